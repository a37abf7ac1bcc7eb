/* http_check.c - which requests are refused before their body is read. */
#include <ctype.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "serve/http.h"
#include "process/child.h"

static const char *header(const struct dl_http_request *r, const char *name) {
    return dl_mhd.MHD_lookup_connection_value(r->connection->mhd, MHD_HEADER_KIND, name);
}

/* Header fields that a proxy might parse differently (request smuggling). */
struct fields {
    const char *odd; /* what is wrong; NULL: nothing */
    int hosts, lengths, encodings;
};

static bool is_token(const char *text, size_t length) {
    for (size_t i = 0; i < length; i++) {
        if (!isalnum((unsigned char)text[i]) && strchr("!#$%&'*+-.^_`|~", text[i]) == NULL)
            return false;
    }
    return length > 0 && memchr(text, '\0', length) == NULL;
}

static bool is_text(const char *text, size_t length) {
    for (size_t i = 0; i < length; i++) {
        const unsigned char c = (unsigned char)text[i];
        if ((c < ' ' && c != '\t') || c == 0x7f) return false;
    }
    return true;
}

static enum MHD_Result look_at_field(void *target, enum MHD_ValueKind kind, const char *name,
                                     size_t name_length, const char *value, size_t length) {
    struct fields *f = target;
    (void)kind;
    if (!is_token(name, name_length)) f->odd = "expected names of headers without other characters";
    if (value != NULL && !is_text(value, length))
        f->odd = "expected headers without control characters";
    if (f->odd != NULL) return MHD_NO;
    f->hosts += strcasecmp(name, "Host") == 0;
    f->lengths += strcasecmp(name, "Content-Length") == 0;
    if (strcasecmp(name, "Transfer-Encoding") == 0) {
        f->encodings++;
        if (value == NULL || strcasecmp(value, "chunked") != 0)
            f->odd = "expected no Transfer-Encoding but chunked";
    }
    return MHD_YES;
}

/* NULL: the fields are unambiguous. */
static const char *odd_fields(const struct dl_http_request *r) {
    struct fields f = {.odd = NULL};
    dl_mhd.MHD_get_connection_values_n(r->connection->mhd, MHD_HEADER_KIND, look_at_field, &f);
    if (f.odd != NULL) return f.odd;
    if (f.hosts > 1) return "expected one Host";
    if (f.lengths + f.encodings > 1)
        return "expected one Content-Length or one Transfer-Encoding, not both";
    return NULL;
}

static bool same_host(const char *host, const char *name) {
    const size_t length = strlen(name);
    if (strncasecmp(host, name, length) != 0) return false;
    if (host[length] == '\0') return true;
    return host[length] == ':' &&
           host[length + 1 + strspn(host + length + 1, "0123456789")] == '\0';
}

static bool on_loopback(const char *listen) {
    return strncmp(listen, "127.", 4) == 0 || strncmp(listen, "[::1]", 5) == 0 ||
           strncmp(listen, "localhost", 9) == 0;
}

/* Under DNS rebinding another site's page reaches this address, but with its own Host. */
static bool host_is_ours(const struct dl_http_request *r) {
    const struct dl_serve_config *c = r->server->config;
    const char *host = header(r, "Host");
    if (host == NULL) return false;
    if (c->host != NULL && same_host(host, c->host)) return true;
    if (!on_loopback(c->listen)) return c->host == NULL;
    return same_host(host, "localhost") || same_host(host, "127.0.0.1") || same_host(host, "[::1]");
}

/* Whether a browser sent the request for another site's page. A browser without Sec-Fetch-Site says
 * so by an Origin ("https://host:port", or "null") other than the Host. */
static bool from_elsewhere(const struct dl_http_request *r) {
    const char *site = header(r, "Sec-Fetch-Site"), *origin = header(r, "Origin"),
               *host = header(r, "Host"), *named = r->server->config->host;
    if (site != NULL) return strcmp(site, "same-origin") != 0 && strcmp(site, "none") != 0;
    if (origin == NULL) return false;
    const char *scheme_end = strstr(origin, "://");
    if (scheme_end == NULL || host == NULL) return true;
    const char *name = scheme_end + 3;
    return strcasecmp(name, host) != 0 && (named == NULL || !same_host(name, named));
}

static bool has_media(const struct dl_http_request *r, const char *media) {
    const char *given = header(r, "Content-Type");
    const size_t length = strlen(media);
    return given != NULL && strncasecmp(given, media, length) == 0 &&
           (given[length] == '\0' || given[length] == ';' || given[length] == ' ');
}

static bool token_is_known(const struct dl_http_request *r) {
    const char *given = header(r, "Authorization");
    if (r->server->token_count == 0) return true;
    return given != NULL && strncasecmp(given, "Bearer ", 7) == 0 &&
           dl_token_known(r->server->tokens, r->server->token_count, given + 7);
}

/* The last address of X-Forwarded-For: the proxy added it; earlier ones come from the client. */
static void forwarded_client(const struct dl_http_request *r, char *out, size_t out_size) {
    const char *list = header(r, "X-Forwarded-For");
    if (list == NULL) return;
    const char *comma = strrchr(list, ','), *last = comma == NULL ? list : comma + 1;
    while (isspace((unsigned char)*last)) last++;
    if (*last == '\0') return;
    const size_t length = strlen(last) < out_size ? strlen(last) : out_size - 1;
    memcpy(out, last, length);
    out[length] = '\0';
}

static int check_body(const struct dl_http_request *r, const char **detail) {
    const bool import = r->route->path[strlen(r->route->path) - 1] == '/';
    const char *length = header(r, "Content-Length");
    const char *coding = header(r, "Content-Encoding");
    if (strcmp(r->route->method, "POST") != 0) return 0;
    *detail = import ? "expected Content-Type: application/octet-stream or application/json"
                     : "expected Content-Type: application/json";
    if (!has_media(r, "application/json") && !(import && has_media(r, "application/octet-stream")))
        return 415;
    *detail = "expected a body without Content-Encoding";
    if (coding != NULL && strcasecmp(coding, "identity") != 0) return 415;
    *detail = "the body is larger than the service takes";
    if (length != NULL && strtod(length, NULL) > r->server->config->body_bytes) return 413;
    return 0;
}

int dl_http_check(struct dl_http_request *r, const char *url, const char *method, const char **rest,
                  const char **detail, double *retry_s) {
    struct dl_server *s = r->server;
    if (s->config->forwarded)
        forwarded_client(r, r->connection->client, sizeof r->connection->client);
    *detail = "too many requests of this client";
    if (!dl_limits_take(&s->limits, r->connection->client, dl_clock_s(), retry_s)) return 429;
    *detail = odd_fields(r);
    if (*detail != NULL) return 400;
    *detail = "the Host of this request is not a name of this service";
    if (!host_is_ours(r)) return 421;
    *detail = "requests of other sites are refused";
    if (strcmp(method, "POST") == 0 && from_elsewhere(r)) return 403;
    const struct dl_route *route = dl_route_find(method, url, rest, &r->allowed);
    *detail = r->allowed != NULL ? "this resource has another method" : "no such resource";
    if (route == NULL) return r->allowed != NULL ? 405 : 404;
    *detail = "expected Authorization: Bearer with a token of this service";
    if (!route->open && !token_is_known(r)) return 401;
    *detail = "the service is stopping";
    if (s->stopping) return 503;
    r->route = route;
    return check_body(r, detail);
}

/* address.c - "HOST:PORT" as a listening socket. */
#include "serve/address.h"

#include <errno.h>
#include <netdb.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

static enum dl_code split(const char *text, char *host, size_t host_size, const char **port,
                          struct dl_err *err) {
    const char *colon = strrchr(text, ':');
    const char *begin = text, *end = colon;
    if (colon != NULL && text[0] == '[') {
        begin = text + 1;
        end = colon > text && colon[-1] == ']' ? colon - 1 : NULL;
    } else if (colon != NULL && memchr(text, ':', (size_t)(colon - text)) != NULL) {
        end = NULL; /* an IPv6 address without brackets */
    }
    if (end == NULL || end == begin || colon[1] == '\0' || (size_t)(end - begin) >= host_size)
        return dl_fail(err, DL_ERR_USAGE,
                       "--listen: expected HOST:PORT such as 127.0.0.1:8080 or [::1]:8080, got "
                       "\"%.80s\"",
                       text);
    memcpy(host, begin, (size_t)(end - begin));
    host[end - begin] = '\0';
    *port = colon + 1;
    /* getaddrinfo wraps 99999 to 34463 */
    const size_t digits = strspn(*port, "0123456789");
    if ((*port)[digits] != '\0' || digits > 5 || atoi(*port) < 1 || atoi(*port) > 65535)
        return dl_fail(err, DL_ERR_USAGE, "--listen: expected a port of 1 to 65535, got \"%.80s\"",
                       *port);
    return DL_OK;
}

enum dl_code dl_address_listen(const char *text, int *fd, struct dl_err *err) {
    char host[256];
    const char *port = NULL;
    struct addrinfo *list = NULL;
    const struct addrinfo wanted = {.ai_socktype = SOCK_STREAM,
                                    .ai_flags = AI_PASSIVE | AI_NUMERICSERV};
    DL_TRY(split(text, host, sizeof host, &port, err));
    const int found = getaddrinfo(host, port, &wanted, &list);
    if (found != 0)
        return dl_fail(err, DL_ERR_USAGE, "--listen: %.100s: %s", text, gai_strerror(found));
    const int made = socket(list->ai_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0), on = 1;
    const bool good = made >= 0 &&
                      setsockopt(made, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on) == 0 &&
                      bind(made, list->ai_addr, list->ai_addrlen) == 0 && listen(made, 1024) == 0;
    const int reason = errno;
    freeaddrinfo(list);
    if (!good) {
        if (made >= 0) close(made);
        return dl_fail(err, DL_ERR_SYSTEM, "--listen: %.100s: %s", text, strerror(reason));
    }
    *fd = made;
    return DL_OK;
}

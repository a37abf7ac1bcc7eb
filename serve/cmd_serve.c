/* cmd_serve.c - the command `serve`. */

#include "serve/run_server.h"

#define CONFIG(member) struct dl_serve_config, member

static const struct dl_option serve_options[] = {
    {"listen", 0, "HOST:PORT", "Service", "address to listen on; default 127.0.0.1:8080",
     DL_TEXT(CONFIG(listen))},
    {"host", 0, "NAME", "Service",
     "name by which clients call the service, checked against the Host of requests; default: on "
     "loopback only localhost, else any",
     DL_TEXT(CONFIG(host))},
    {"site", 0, "NAME|FILE", "Service", "cluster for which Slurm scripts are written",
     DL_TEXT(CONFIG(site))},
    {"measured", 0, "DIR", "Service",
     "folder of results of 'dlmodel slurm collect': they correct predictions and are compared with "
     "them",
     DL_TEXT(CONFIG(measured))},
    {"token-file", 0, "FILE", "Access",
     "one token a line (mode 0600); requests must have one as Authorization: Bearer TOKEN",
     DL_TEXT(CONFIG(token_file))},
    {"forwarded", 0, NULL, "Access",
     "behind a proxy: take the client's address from X-Forwarded-For", DL_FLAG(CONFIG(forwarded))},
    {"rate", 0, "N", "Limits", "requests per second of a client; 0: no limit; default 200",
     DL_NUMBER(CONFIG(requests_per_s), .min = 0, .max = 1e6)},
    {"connections", 0, "N", "Limits", "connections at once; default 1000",
     DL_INTEGER(CONFIG(connections), .min = 1, .max = 100000)},
    {"connections-per-client", 0, "N", "Limits",
     "connections of one client; 0: no limit; default 256",
     DL_INTEGER(CONFIG(connections_per_client), .min = 0, .max = 100000)},
    {"body", 0, "BYTES", "Limits", "largest request; default 32MiB",
     DL_NUMBER(CONFIG(body_bytes), .unit = DL_UNIT_BYTE, .min = 1024, .max = 128 << 20)},
    {"workers", 0, "N", "Limits", "processes for short requests; default 2",
     DL_INTEGER(CONFIG(workers), .min = 1, .max = 64)},
    {"searches", 0, "N", "Limits", "processes for long requests such as searches; default 2",
     DL_INTEGER(CONFIG(searches), .min = 1, .max = 64)},
    {"short", 0, "TIME", "Limits", "a short request takes at most this; default 10s",
     DL_NUMBER(CONFIG(short_s), .unit = DL_UNIT_S, .min = 0.1, .max = 3600)},
    {"long", 0, "TIME", "Limits", "a long request takes at most this; default 120s",
     DL_NUMBER(CONFIG(long_s), .unit = DL_UNIT_S, .min = 0.1, .max = 86400)},
    {"memory", 0, "BYTES", "Limits", "memory of a process that computes; 0: no limit; default 2GiB",
     DL_NUMBER(CONFIG(memory_bytes), .unit = DL_UNIT_BYTE, .min = 0, .max = 1e13)},
    {"log", 0, NULL, "Service",
     "print method, route, status and time of each request, never its content",
     DL_FLAG(CONFIG(log))},
    {"help", 'h', NULL, "Output", "show this help", NULL},
    {.name = NULL},
};
static const struct dl_option *const tables[] = {serve_options, NULL};
static const char *const examples[] = {
    "dlmodel serve",
    "dlmodel serve --listen 127.0.0.1:9000 --measured results --token-file tokens.txt",
    NULL,
};

#ifndef DL_HAVE_MICROHTTPD
enum dl_code dl_server_run(const struct dl_context *context, const struct dl_serve_config *config,
                           struct dl_err *err) {
    (void)context;
    (void)config;
    return dl_fail(err, DL_ERR_BACKEND,
                   "dlmodel was built without libmicrohttpd; install libmicrohttpd-dev and build "
                   "again (make features)");
}
#endif

static enum dl_code run(struct dl_context *context, const struct dl_options *options,
                        struct dl_err *err) {
    struct dl_serve_config config = {.listen = "127.0.0.1:8080",
                                     .requests_per_s = 200,
                                     .connections = 1000,
                                     .connections_per_client = 256,
                                     .body_bytes = 32 << 20,
                                     .workers = 2,
                                     .searches = 2,
                                     .short_s = 10,
                                     .long_s = 120,
                                     .memory_bytes = 2147483648.0};
    DL_TRY(dl_options_bind(options, serve_options, &config, err));
    if (options->positional_count > 0)
        return dl_fail(err, DL_ERR_USAGE, "unexpected argument \"%s\"", options->positional[0]);
    return dl_server_run(context, &config, err);
}

const struct dl_command dl_cmd_serve = {
    .name = "serve",
    .summary = "answer over HTTP, with a page for the browser",
    .usage = "[options]",
    .purpose =
        "Runs a service: a page on which to choose network, machine, framework and nodes, and the "
        "commands predict, explain, search, compare, campaign, advise, match and import as JSON "
        "over HTTP (GET /v1/openapi.json describes it). Answers are what the command line prints "
        "with --json. Requests are computed by processes that can read the data folders and "
        "nothing else; a request names data of the service or contains its own documents. Listens "
        "on this machine only, by default. SIGTERM finishes running requests; SIGHUP reads data, "
        "tokens, profile and site again.",
    .examples = examples,
    .options = tables,
    .run = run,
};

/* run_server.h - runs the service. Separate from server.h, so that the command does not need
 * libmicrohttpd. */
#ifndef DL_SERVE_RUN_SERVER_H
#define DL_SERVE_RUN_SERVER_H

#include "serve/serve.h"

/* Serves until SIGTERM or SIGINT, then finishes running requests for up to ten seconds. SIGHUP
 * reads data, tokens, profile and site again. DL_ERR_USAGE: invalid address; DL_ERR_SYSTEM: an
 * error of the system. */
enum dl_code dl_server_run(const struct dl_context *context, const struct dl_serve_config *config,
                           struct dl_err *err);

#endif

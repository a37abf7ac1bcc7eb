/* run_server.h - the service, from the settings to its end. Apart from server.h so that the command
 * needs nothing of libmicrohttpd. */
#ifndef DL_SERVE_RUN_SERVER_H
#define DL_SERVE_RUN_SERVER_H

#include "serve/serve.h"

/* Serves until SIGTERM or SIGINT, then finishes what runs, for up to ten seconds. SIGHUP reads data
 * and tokens again. DL_ERR_USAGE: an address that cannot be read; DL_ERR_SYSTEM: what the system
 * refused. */
enum dl_code dl_server_run(const struct dl_context *context, const struct dl_serve_config *config,
                           struct dl_err *err);

#endif

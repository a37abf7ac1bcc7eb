/* serve.h - the settings of the service. */
#ifndef DL_SERVE_SERVE_H
#define DL_SERVE_SERVE_H

#include <stdbool.h>
#include <stdint.h>

#include "model/catalog/command.h"

struct dl_serve_config {
    const char *listen;             /* "127.0.0.1:8080", "[::1]:8080" */
    const char *host;               /* further name that a request's Host may have; NULL: none */
    const char *site;               /* of Slurm scripts; NULL: none */
    const char *measured;           /* folder of results; NULL: none */
    const char *token_file;         /* NULL: no token asked for */
    int64_t workers, searches;      /* processes for short and for long requests */
    int64_t connections;            /* at most */
    int64_t connections_per_client; /* 0: no limit */
    double requests_per_s;          /* of a client; 0: no limit */
    double body_bytes;              /* of a request, at most */
    double memory_bytes;            /* address space of a worker */
    double short_s, long_s;         /* time that a request may take */
    bool forwarded;                 /* the client's address is in X-Forwarded-For */
    bool log;                       /* a line per request: never its content */
};

#endif

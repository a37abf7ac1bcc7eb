/* serve.h - the settings of the service. */
#ifndef DL_SERVE_SERVE_H
#define DL_SERVE_SERVE_H

#include <stdbool.h>
#include <stdint.h>

#include "model/catalog/command.h"

struct dl_serve_config {
    const char *listen;             /* "127.0.0.1:8080", "[::1]:8080" */
    const char *host;               /* additional valid Host of requests; NULL: none */
    const char *site;               /* site of Slurm scripts; NULL: the user's own */
    const char *measured;           /* folder of measured runs; NULL: none */
    const char *token_file;         /* NULL: no token required */
    int64_t workers, searches;      /* worker processes for short and for long requests */
    int64_t connections;            /* maximum */
    int64_t connections_per_client; /* 0: no limit */
    double requests_per_s;          /* per client; 0: no limit */
    double body_bytes;              /* maximum size of a request */
    double memory_bytes;            /* address space of a worker */
    double short_s, long_s;         /* time limits of short and long requests */
    bool forwarded;                 /* take the client's address from X-Forwarded-For */
    bool log;                       /* log one line per request, never its content */
};

#endif

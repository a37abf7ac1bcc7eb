/* client_limits.h - how often one client may ask; whether a token is known. */
#ifndef DL_SERVE_CLIENT_LIMITS_H
#define DL_SERVE_CLIENT_LIMITS_H

#include <stdbool.h>
#include <stdint.h>

enum { DL_CLIENT_SLOTS = 4096 };

/* A token bucket a client, in a table of fixed size: clients that share a slot share a bucket,
 * which is fair enough and cannot be made to grow. */
struct dl_limits {
    double requests_per_s, burst; /* requests_per_s 0: no limit */
    uint64_t key;                 /* of the hash, unknown to clients */
    struct {
        double tokens, at_s;
    } slots[DL_CLIENT_SLOTS];
};

void dl_limits_init(struct dl_limits *limits, double requests_per_s, uint64_t key);
/* Takes one token of the client; false: there is none, and *wait_s says when. */
bool dl_limits_take(struct dl_limits *limits, const char *client, double now_s, double *wait_s);

/* Whether the token is one of the list, in a time that does not depend on where they differ. */
bool dl_token_known(const char *const *tokens, int count, const char *given);

#endif

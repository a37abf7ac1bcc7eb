/* client_limits.h - request rate of each client; token comparison. */
#ifndef DL_SERVE_CLIENT_LIMITS_H
#define DL_SERVE_CLIENT_LIMITS_H

#include <stdbool.h>
#include <stdint.h>

enum { DL_CLIENT_SLOTS = 4096 };

/* One token bucket per hash slot, in a table of fixed size: clients of one slot share a bucket, and
 * no client can make the table grow. */
struct dl_limits {
    double requests_per_s, burst; /* requests_per_s 0: no limit */
    uint64_t key;                 /* seed of the hash, unknown to clients */
    struct {
        double tokens, at_s;
    } slots[DL_CLIENT_SLOTS];
};

void dl_limits_init(struct dl_limits *limits, double requests_per_s, uint64_t key);
/* Takes one token of the client's bucket; false: it is empty, and *wait_s is the time until the
 * next token. */
bool dl_limits_take(struct dl_limits *limits, const char *client, double now_s, double *wait_s);

/* Whether the token is in the list, in constant time. */
bool dl_token_known(const char *const *tokens, int count, const char *given);

#endif

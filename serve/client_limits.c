/* client_limits.c - token buckets and the comparison of tokens. */
#include "serve/client_limits.h"

#include <math.h>
#include <string.h>

#include "model/core/hash.h"

void dl_limits_init(struct dl_limits *limits, double requests_per_s, uint64_t key) {
    memset(limits, 0, sizeof *limits);
    limits->requests_per_s = requests_per_s;
    limits->burst = fmax(1, 2 * requests_per_s);
    limits->key = key;
    for (int i = 0; i < DL_CLIENT_SLOTS; i++) limits->slots[i].tokens = limits->burst;
}

/* Seeded by a secret, so that a client cannot choose its slot. */
static unsigned slot_of(const struct dl_limits *limits, const char *client) {
    const uint64_t hash = dl_hash_text(DL_HASH_START ^ limits->key, client);
    return (unsigned)((hash ^ (hash >> 32)) % DL_CLIENT_SLOTS);
}

bool dl_limits_take(struct dl_limits *limits, const char *client, double now_s, double *wait_s) {
    const unsigned i = slot_of(limits, client);
    *wait_s = 0;
    if (limits->requests_per_s <= 0) return true;
    const double since_s = fmax(0, now_s - limits->slots[i].at_s);
    limits->slots[i].at_s = now_s;
    limits->slots[i].tokens =
        fmin(limits->burst, limits->slots[i].tokens + since_s * limits->requests_per_s);
    if (limits->slots[i].tokens < 1) {
        *wait_s = (1 - limits->slots[i].tokens) / limits->requests_per_s;
        return false;
    }
    limits->slots[i].tokens -= 1;
    return true;
}

bool dl_token_known(const char *const *tokens, int count, const char *given) {
    const size_t length = strlen(given);
    int known = 0;
    for (int i = 0; i < count; i++) {
        const size_t own = strlen(tokens[i]);
        unsigned differs = own != length;
        for (size_t k = 0; k < length; k++)
            differs |= (unsigned)(given[k] ^ tokens[i][own == 0 ? 0 : k % own]);
        known |= differs == 0 && own > 0;
    }
    return known != 0;
}

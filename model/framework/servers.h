/* servers.h - parameter servers: how many there are, where they run, which variables each holds,
 * and how the messages of all workers queue at a worker and at a server (F-PS-QUEUE).
 *
 * A worker is the process of a node, which sums the gradients of its devices first.
 * Servers are spread over the workers' nodes from the first one on (servers_colocated), or have
 * separate nodes. One thread of a process receives and parses all its messages; the adapter of
 * a node carries those of all its processes.
 */
#ifndef DL_MODEL_FRAMEWORK_SERVERS_H
#define DL_MODEL_FRAMEWORK_SERVERS_H

#include "model/framework/gradient_sync.h"

enum { DL_SERVER_ALL = -1 }; /* a variable that is split evenly over all servers */

struct dl_servers {
    int count;
    double workers;
    /* Seconds for one byte of a variable: of the worker's own message, and of the messages of all
     * workers at the server that holds it. */
    double worker_push_s_per_byte, worker_pull_s_per_byte, server_push_s_per_byte,
        server_pull_s_per_byte;
    /* Host time of one message at a worker, and of all workers' messages at a server. */
    double worker_message_s, server_message_s;
    double flow_s_per_byte; /* of one worker's messages from or to one server */
};

/* Messages in one direction through workers and servers, each first come, first served. */
struct dl_server_queue {
    const struct dl_servers *servers;
    bool pull;
    double worker_free_s, *server_free_s; /* [count] */
    double skew_s; /* pushes: the first worker sends so much earlier than the last (F-PS-SKEW) */
};

/* Server processes of a plan: as it says, or the framework's for each node. */
int64_t dl_server_count(const struct dl_plan *plan);

/* Whether servers run next to the plan's workers. */
bool dl_servers_colocated(const struct dl_framework *framework, const struct dl_plan *plan);

/* F-HOST-SUM on the nodes that run the servers: seconds to add `terms` buffers of `bytes`; NAN when
 * their system lacks the memory bandwidth. */
double dl_servers_sum_s(const struct dl_gradient_sync_request *request, double bytes, double terms);

/* Rates of the request's servers; DL_ERR_INPUT when the system lacks a link or the host's memory
 * bandwidth. F-PS-QUEUE: a byte takes a worker max(r d / B, 1/send) to push, with 1/receive to
 * pull, and a server with W workers max(R n / B, W / receive, W / sum, (W + 1) n / M) to take the
 * pushes and max(R n / B, W / send) to answer the pulls. d: workers of a node, n: servers of a
 * node, r: share of a worker's bytes that leave its node, R: workers on other nodes than the
 * server, B: adapters x bandwidth, M: memory bandwidth of the host; at a server those of the plan's
 * server_nodes, where it names them. Traffic between leaves takes the uplinks of the fullest leaf
 * (F-NETWORK-LEAF). */
enum dl_code dl_servers_of(const struct dl_gradient_sync_request *request, struct dl_servers *out,
                           struct dl_err *err);

/* The server of each gradient, by the framework's server_assignment; those of at least
 * `split_elements` elements go to DL_SERVER_ALL (NAN: none). In registration order: round-robin;
 * least-loaded: to the server with the fewest bytes so far; hashed: variable k to server (9973 k)
 * mod count. NULL: out of memory. */
int *dl_servers_assign(const struct dl_gradient_sync_request *request,
                       const struct dl_servers *servers, double split_elements);

void dl_server_queue_init(const struct dl_servers *servers, bool pull, struct dl_arena *arena,
                          struct dl_server_queue *out);
/* F-PS-SKEW: how much later the last of the workers gets a variable of `bytes` on `server` than the
 * first, when it arrives there at `arrived_s` and the last worker began to receive it at `sent_s`
 * less its own time: (W - 1)/W of the server's time for all, at most what the server is later than
 * the worker. */
double dl_server_pull_skew_s(const struct dl_server_queue *queue, int server, double bytes,
                             double sent_s, double arrived_s);
/* Sends `bytes` of a variable on `server` (or DL_SERVER_ALL), ready at `ready_s` at the last
 * worker. *start_s and *sent_s: when that worker begins and ends. Returns when its message has
 * arrived. F-PS-QUEUE */
double dl_server_queue_pass(struct dl_server_queue *queue, int server, double bytes, double ready_s,
                            double *start_s, double *sent_s);

#endif

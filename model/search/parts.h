/* parts.h - parts of one job on nodes of several kinds: workers, parameter servers, and the nodes
 * that read and decode samples. F-HETEROGENEOUS-PARTS. Every choice is predicted: exact.
 */
#ifndef DL_MODEL_SEARCH_PARTS_H
#define DL_MODEL_SEARCH_PARTS_H

#include "model/search/placement.h"

enum { DL_PARTS_CHOICES = 200000 };

/* One choice. Nodes 0: the workers' nodes do that part themselves. */
struct dl_role_assignment {
    int worker_kind, server_kind, input_kind; /* of the job's groups; -1: none */
    int64_t worker_nodes, server_nodes, input_nodes;
    bool fits;
    double samples_per_s, low_samples_per_s, high_samples_per_s;
    double iteration_s, exposed_comm_s, exposed_input_s;
    double sample_energy_j, cost_per_sample; /* NAN: unknown */
};

/* Workers on 1 to N_k nodes of one kind k; servers, where the framework has them, next to the
 * workers or on nodes of any kind that are left; input, where samples are decoded, likewise. By the
 * objective per sample, those that do not fit in memory last; of equals the one with fewer nodes
 * first. A node that serves or decodes draws its host, and its devices as they wait. Counts above 8
 * nodes are powers of two and N_k. Errors: those of the last choice when none is possible;
 * DL_ERR_USAGE: an objective without power or prices, more than DL_PARTS_CHOICES. */
enum dl_code dl_parts_search(const struct dl_heterogeneous_question *question,
                             enum dl_placement_objective objective, struct dl_arena *arena,
                             struct dl_role_assignment **out, int *count, struct dl_err *err);

#endif

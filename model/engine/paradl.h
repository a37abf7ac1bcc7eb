/* paradl.h - ParaDL's own forms (--assume paradl): time of an epoch under its assumptions.
 * F-PARADL.
 *
 * Compute scales perfectly with the devices that share it, every collective is a ring over one link
 * (alpha, beta), nothing overlaps, and a device updates the weights that it holds. With D samples
 * per epoch, B per iteration, p = p1 p2 devices, FW and BW seconds per sample, WU seconds per
 * iteration, and y and w bytes of a layer's output (per sample) and weights:
 *
 *   data              (D/p) sum(FW + BW) + (D/B) sum WU + 2 (D/B) (p - 1) (alpha + W beta / p)
 *   filter, channel   (D/p) sum(FW + BW) + (D/B) sum WU / p
 *                     + 3 (D/B) (p - 1) sum_l (alpha + B y_l beta / p)
 *   data+filter       groups of p2 devices: compute as filter with p2 inside, all-reduce of W over
 *                     the p1 groups at their beta
 *
 * D/B is rounded up where it counts updates and messages. Every device computes layers that are not
 * split (fully connected ones) in full. Source: paradl-paper, Table III.
 */
#ifndef DL_MODEL_ENGINE_PARADL_H
#define DL_MODEL_ENGINE_PARADL_H

#include <stdbool.h>

struct dl_paradl_layer {
    double compute_s;    /* one sample, forward and backward */
    double update_s;     /* one iteration */
    double output_bytes; /* one sample */
    double weight_bytes;
    bool split; /* by filter and channel parallelism */
};

struct dl_paradl_link {
    double alpha_s, beta_s_per_byte;
};

struct dl_paradl_request {
    const struct dl_paradl_layer *layers;
    int layer_count;
    double dataset_samples, batch_samples; /* D, B: of one iteration, all devices */
    double replicas, parts;                /* p1, p2 */
    struct dl_paradl_link inside, across;  /* of the p2 devices of a group, of the p1 groups */
};

struct dl_paradl_time {
    double compute_s, update_s, comm_s;
}; /* of an epoch */

/* parts = 1: data; replicas = 1: filter or channel. */
struct dl_paradl_time dl_paradl_epoch(const struct dl_paradl_request *request);

#endif

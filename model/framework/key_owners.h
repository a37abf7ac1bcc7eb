/* key_owners.h - arrays that are summed on one GPU of a node each (F-KEY-OWNER): the other GPUs
 * copy the whole array there, it adds them (and updates), and they copy the result back. Arrays are
 * dealt out by falling size, each to the GPU with the fewest bytes so far.
 *
 * CUDA lets a device open peer access to at most 8 others, except behind NVSwitch. A framework that
 * opens it in the order of device numbers leaves pairs without it where both numbers are 8 or more;
 * their copies go through host memory, over the links of both devices one after the other.
 * Devices behind one slot share its link; copies between sockets share the bridge.
 */
#ifndef DL_MODEL_FRAMEWORK_KEY_OWNERS_H
#define DL_MODEL_FRAMEWORK_KEY_OWNERS_H

#include "model/framework/gradient_sync.h"

struct dl_key_owners {
    int devices, per_slot;
    int peers;     /* most peers of a device; 0: no peer access */
    int *owner_of; /* [gradient_count] */
    double peer_s_per_byte,
        staged_s_per_byte;              /* seconds per byte of one copy into or out of an owner */
    double star_s_per_byte;             /* of all copies at once where a link graph decides; NAN */
    double bridge_s_per_byte;           /* of all copies of one array over the bridge */
    double sum_s_per_byte;              /* of the sum on the owner */
    double *slot_free_s, bridge_free_s; /* queue */
};

/* Devices that exchange with `owner` through host memory alone. */
int dl_key_owner_staged(const struct dl_key_owners *owners, int owner);

/* Owners of the request's gradients. DL_ERR_INPUT when the system has no path between devices. */
enum dl_code dl_key_owners_of(const struct dl_gradient_sync_request *request,
                              struct dl_key_owners *out, struct dl_err *err);

/* Seconds in which gradient g is copied to its owner or back, if no other is on the way. */
double dl_key_owner_copy_s(const struct dl_key_owners *owners, int gradient, double bytes);

/* Queues the copies of gradient g to its owner (`ways` 1), or there and back (2), from `ready_s`
 * on; returns when the sum, or the copy of the last device, is complete. F-KEY-OWNER */
double dl_key_owner_pass(struct dl_key_owners *owners, int gradient, double bytes, int ways,
                         double ready_s);

#endif

/* what_if.h - what was measured, under changed datasheet numbers (F-WHAT-IF).
 *
 * A file holds datasheet numbers and values measured or fitted on such a device:
 * NCCL's attained rate, point-to-point pieces, kernel-time models, sustained rates. A what-if that
 * changes the former scales the latter by new / unchanged, unless it sets them as well.
 */
#ifndef DL_MODEL_MACHINE_WHAT_IF_H
#define DL_MODEL_MACHINE_WHAT_IF_H

#include "model/machine/system.h"

/* Scales what follows from the members of `device` that differ from those of `measured`: rates with
 * clock and units, sustained rates with peaks, kernel-time models with rates, memory bandwidth and
 * latency. Members that differ themselves stay. Lists are copied before they change. DL_ERR_SYSTEM.
 */
void dl_device_what_if(const struct dl_device *measured, struct dl_device *device,
                       struct dl_arena *arena);

/* The same of the links and host of a system, whose links are filled (dl_topology_fill); not of its
 * device, and not of its measured collectives: those hold for system->as_measured. DL_ERR_SYSTEM.
 */
void dl_system_what_if(const struct dl_system *measured, struct dl_system *system,
                       struct dl_arena *arena);

/* Why no prediction depends on the member at `key`, as --set takes it but without the prefix of its
 * document ("links.inter.comment", "tdp"); NULL: some do. */
const char *dl_what_if_reason(const char *key);

#endif

/* machine_facts.h - facts about a machine from the output of tools: scontrol show node, nvidia-smi
 * topo -m, nvidia-smi -L, ibstat. */
#ifndef DL_IMPORT_INIT_MACHINE_FACTS_H
#define DL_IMPORT_INIT_MACHINE_FACTS_H

#include <stdbool.h>
#include <stdint.h>

#include "model/core/arena.h"

/* NULL, 0: unknown. */
struct dl_machine_facts {
    const char *device;      /* its name in full, or the type in Slurm's gres: "a100" */
    const char *nodes_from;  /* the tool that counts nodes, cores and memory */
    const char *device_from; /* the tool that names the device */
    int64_t nodes, devices_per_node, sockets, cores;
    double memory_bytes;
    const char *partition, *gres; /* gres without the count: "gpu:volta" */
    const char *inside;         /* between GPUs: "NVLink", or the widest of PIX PXB PHB NODE SYS */
    const char *distance;       /* from a GPU to its nearest adapter */
    int64_t adapters;           /* active ports of the highest rate */
    double adapter_bytes_per_s; /* their rate */
    bool adapter_ethernet;
};

/* Adds the facts in a tool's output; false: not the output of a known tool. */
bool dl_machine_facts_add(const char *text, struct dl_arena *arena, struct dl_machine_facts *facts);

#endif

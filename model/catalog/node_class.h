/* node_class.h - "8xH100", "4x8xh100_sxm": nodes of a device that no system file describes, with
 * the host and links that are usual for the device: data/device_classes.csv. */
#ifndef DL_MODEL_CATALOG_NODE_CLASS_H
#define DL_MODEL_CATALOG_NODE_CLASS_H

#include "model/catalog/data.h"

struct dl_node_class {
    int64_t nodes, devices_per_node;
    const char *device;          /* name of its file */
    const char *node, *network;  /* systems with the usual host, and links between nodes */
    const char *source, *remark; /* of that choice: a key of SOURCES.md, a note or "" */
};

/* Whether a name has the form N x DEVICE or M x N x DEVICE. */
bool dl_node_class_is(const char *name);
/* The parts of such a name. N devices of more than one usual node are as many nodes.
 * DL_ERR_USAGE: no such device, several, no usual node, or N is no multiple of one. */
enum dl_code dl_node_class_find(const struct dl_data *data, const char *name,
                                struct dl_arena *arena, struct dl_node_class *out,
                                struct dl_err *err);
/* The system that it describes, as the text of a file; its nodes are the usual ones, of which
 * devices_per_node devices are used. */
enum dl_code dl_node_class_text(const struct dl_data *data, const char *name,
                                const struct dl_node_class *of, struct dl_arena *arena,
                                const char **text, struct dl_err *err);
/* "4 nodes with 8 h100_sxm; host and links of dgx-h100 (ml-engineering)" */
const char *dl_node_class_words(const struct dl_node_class *of, struct dl_arena *arena);

/* A system file that says little: sets its jitter, host and fabric, where it has none, to those of
 * the usual machine of its device, and `borrowed` to a sentence about that. */
enum dl_code dl_node_class_lend(const struct dl_data *data, struct dl_arena *arena,
                                struct dl_system *system, struct dl_err *err);

#endif

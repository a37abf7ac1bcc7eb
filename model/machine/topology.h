/* topology.h - rings over the link graph of one node.
 *
 * A ring all-reduce runs over Hamiltonian cycles of the graph of NVLinks between the devices that
 * take part. The number of link-disjoint cycles sets the bandwidth; 5 of the 8 devices of a cube
 * mesh are slower than 4 because no cycle passes through the fifth. Not modelled: rings that mix
 * NVLink and PCIe hops, channels of unequal speed.
 */
#ifndef DL_MODEL_MACHINE_TOPOLOGY_H
#define DL_MODEL_MACHINE_TOPOLOGY_H

#include "model/machine/link.h"

/* F-TOPO-RINGS: the largest number of unidirectional rings over devices 0..devices-1 such that no
 * link carries two rings in the same direction: for 2 devices their link count; else twice the
 * largest set of edge-disjoint undirected Hamiltonian cycles (both directions of a cycle are
 * rings). 0: no cycle, or outside 2..DL_LINK_DEVICES. Exact while the search stays
 * within its budget of steps (always for the machines in data/systems), else the best found. */
int dl_topology_rings(const struct dl_edge *edges, int edge_count, int64_t devices);

/* Whether links join devices 0..devices-1, directly or through each other. */
bool dl_topology_connected(const struct dl_edge *edges, int edge_count, int64_t devices);

/* Sets the derived members of a link with edges for 2..min(devices, DL_LINK_DEVICES) devices.
 * Code that builds such a link must call it, as the loader of system files does. Well below a
 * millisecond for 8 devices. */
void dl_topology_fill(struct dl_link *link, int64_t devices);

#endif

/* topology.h - rings over the link graph of one node.
 *
 * A ring all-reduce runs over Hamiltonian cycles of the graph of NVLinks between the devices that
 * take part. The number of link-disjoint cycles decides the bandwidth, which is why 5 of the 8
 * devices of a cube mesh are slower than 4: no cycle goes through the fifth. What is not modelled:
 * rings that mix NVLink and PCIe hops, and channels of unequal speed.
 */
#ifndef DL_MODEL_HARDWARE_TOPOLOGY_H
#define DL_MODEL_HARDWARE_TOPOLOGY_H

#include "model/hardware/link.h"

/* F-TOPO-RINGS: the largest number of unidirectional rings over devices 0..devices-1 such that no
 * link carries two rings in the same direction: for 2 devices their link count; else twice the
 * largest set of edge-disjoint undirected Hamiltonian cycles (both directions of a cycle are
 * rings). 0: no cycle, or outside 2..DL_LINK_DEVICES. Exact while the search visits fewer than a
 * fixed number of nodes (always for the machines in data/systems), else the best found.
 */
int dl_topology_rings(const struct dl_edge *edges, int edge_count, int64_t devices);

/* Devices 0..devices-1 are joined by links, directly or through each other. */
bool dl_topology_connected(const struct dl_edge *edges, int edge_count, int64_t devices);

/* Fill link->ring_channels and link->connected for 2..min(devices, DL_LINK_DEVICES) devices. To be
 * called by whoever builds a dl_link with edges (the loader of system files does). Takes well below
 * a millisecond for 8 devices. */
void dl_topology_fill(struct dl_link *link, int64_t devices);

#endif

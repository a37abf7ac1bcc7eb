/* probe_gpu_nic.c - network adapters of this node from /sys, each with its rate and its distance to
 * a GPU in the terms of 'nvidia-smi topo': PIX one PCI switch, PXB several, PHB the host bridge,
 * NODE within a NUMA node, SYS across NUMA nodes. */
#define _XOPEN_SOURCE 700 /* realpath */
#include "calibrate/probes/gpu/probe_gpu.h"

#include <ctype.h>
#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { PATH_SIZE = 4096, MOST = 16 };

/* First line of a file; false: none. */
static bool read_line(const char *path, char *out, size_t out_size) {
    FILE *file = fopen(path, "r");
    if (file == NULL) return false;
    const bool got = fgets(out, (int)out_size, file) != NULL;
    fclose(file);
    if (got) out[strcspn(out, "\n")] = 0;
    return got;
}

static int numa_node(const char *device_path) {
    char path[PATH_SIZE + 32], text[32];
    snprintf(path, sizeof path, "%s/numa_node", device_path);
    return read_line(path, text, sizeof text) ? atoi(text) : -1;
}

static int depth(const char *path) {
    int slashes = 0;
    for (; *path != 0; path++) slashes += *path == '/';
    return slashes;
}

/* Both: real paths ".../devices/pci0000:3a/0000:3a:00.0/0000:3b:00.0". */
static const char *distance(const char *a, const char *b) {
    size_t common = 0;
    for (size_t i = 0; a[i] != 0 && a[i] == b[i]; i++) {
        if (a[i + 1] == '/' || (a[i + 1] == 0 && b[i + 1] == 0)) {
            if (b[i + 1] == '/' || b[i + 1] == 0) common = i + 1;
        }
    }
    const char *root = strstr(a, "/pci");
    const size_t bridge = root == NULL ? 0 : (size_t)(root - a) + 1 + strcspn(root + 1, "/");
    if (bridge == 0 || common < bridge) {
        const int node_a = numa_node(a), node_b = numa_node(b);
        return node_a >= 0 && node_a == node_b ? "NODE" : "SYS";
    }
    if (common == bridge) return "PHB";
    /* Below one switch: its downstream port and the device. */
    return depth(a + common) <= 2 && depth(b + common) <= 2 ? "PIX" : "PXB";
}

static bool device_path(const char *sys, const char *class, const char *name, char *out) {
    char path[PATH_SIZE];
    snprintf(path, sizeof path, "%s/class/%s/%s/device", sys, class, name);
    return realpath(path, out) != NULL;
}

static void print_nic(int index, const char *name, const char *kind, double gbit_per_s,
                      const char *gpu, const char *nic) {
    char key[16], text[300];
    snprintf(key, sizeof key, "nic_%d", index);
    snprintf(text, sizeof text, "%.60s %s %g Gb/s %s", name, kind, gbit_per_s,
             gpu[0] != 0 ? distance(gpu, nic) : "SYS");
    dl_print_fact(key, text);
}

/* Rate of port 1 of a verbs adapter that is up; 0: none. */
static double verbs_rate(const char *sys, const char *name, char *layer, size_t layer_size) {
    char path[PATH_SIZE], text[64];
    snprintf(path, sizeof path, "%s/class/infiniband/%s/ports/1/state", sys, name);
    if (!read_line(path, text, sizeof text) || strstr(text, "ACTIVE") == NULL) return 0;
    snprintf(path, sizeof path, "%s/class/infiniband/%s/ports/1/link_layer", sys, name);
    if (!read_line(path, layer, layer_size)) return 0;
    snprintf(path, sizeof path, "%s/class/infiniband/%s/ports/1/rate", sys, name);
    return read_line(path, text, sizeof text) ? strtod(text, NULL) : 0;
}

static int by_name(const struct dirent **a, const struct dirent **b) {
    return strcmp((*a)->d_name, (*b)->d_name);
}

struct adapters {
    const char *sys, *gpu; /* real path of the GPU; "": unknown */
    int count;
};

static void add_adapter(struct adapters *found, const char *class, const char *name,
                        const char *kind, double gbit_per_s) {
    char nic[PATH_SIZE];
    if (gbit_per_s > 0 && found->count < MOST && device_path(found->sys, class, name, nic))
        print_nic(found->count++, name, kind, gbit_per_s, found->gpu, nic);
}

static void add_verbs(struct adapters *found, const char *name) {
    char layer[32] = "";
    const double rate = verbs_rate(found->sys, name, layer, sizeof layer);
    add_adapter(found, "infiniband", name, strcmp(layer, "InfiniBand") == 0 ? "infiniband" : "roce",
                rate);
}

static void add_ethernet(struct adapters *found, const char *name) {
    char path[PATH_SIZE], speed[32];
    snprintf(path, sizeof path, "%s/class/net/%s/speed", found->sys, name);
    const double mbit = read_line(path, speed, sizeof speed) ? strtod(speed, NULL) : 0;
    add_adapter(found, "net", name, "ethernet", mbit / 1000);
}

/* Adapters of one class, in the order of their names. */
static void scan(struct adapters *found, const char *class,
                 void (*add)(struct adapters *, const char *)) {
    char path[PATH_SIZE];
    struct dirent **names = NULL;
    snprintf(path, sizeof path, "%s/class/%s", found->sys, class);
    const int count = scandir(path, &names, NULL, by_name);
    for (int i = 0; i < count; i++) {
        if (names[i]->d_name[0] != '.') add(found, names[i]->d_name);
        free(names[i]);
    }
    if (count >= 0) free(names);
}

void dl_nic_facts(const char *sys, const char *pci) {
    static const char *const modules[] = {"nvidia_peermem", "nv_peer_mem"};
    char path[PATH_SIZE], gpu[PATH_SIZE] = "", place[32];
    snprintf(place, sizeof place, "%.31s", pci);
    for (char *c = place; *c != 0; c++) *c = (char)tolower((unsigned char)*c);
    snprintf(path, sizeof path, "%s/bus/pci/devices/%s", sys, place);
    if (realpath(path, gpu) == NULL) gpu[0] = 0;
    struct adapters found = {.sys = sys, .gpu = gpu};
    scan(&found, "infiniband", add_verbs);
    /* Ethernet matters only where no verbs adapter is up. */
    if (found.count == 0) scan(&found, "net", add_ethernet);
    for (int i = 0; i < 2; i++) {
        snprintf(path, sizeof path, "%s/module/%s", sys, modules[i]);
        if (access(path, F_OK) != 0) continue;
        dl_print_fact("gpudirect", modules[i]);
        break;
    }
}

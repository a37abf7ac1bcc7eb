/* probe_mpi_nics.c - network interfaces of this host, by their kernel names. Speeds come from the
 * ethtool ioctl (Linux), which sees the network namespace of this process, and for InfiniBand from
 * /sys/class/infiniband. Virtual interfaces report no speed. */
#define _DEFAULT_SOURCE
#include "calibrate/probes/mpi/probe_mpi_survey.h"

#include <dirent.h>
#include <net/if.h>
#include <netinet/in.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include <linux/ethtool.h>
#include <linux/sockios.h>

static void add(char *text, size_t size, const char *more) {
    const size_t used = strlen(text);
    if (used + 1 < size) snprintf(text + used, size - used, "%s%s", used > 0 ? "; " : "", more);
}

static void describe_interface(int handle, const char *name, char *out, size_t size) {
    struct ifreq request = {.ifr_flags = 0};
    struct ethtool_cmd link = {.cmd = ETHTOOL_GSET};
    char speed[48] = "";
    snprintf(request.ifr_name, sizeof request.ifr_name, "%s", name);
    if (ioctl(handle, SIOCGIFFLAGS, &request) != 0 || (request.ifr_flags & IFF_LOOPBACK) != 0 ||
        (request.ifr_flags & IFF_UP) == 0)
        return;
    request.ifr_data = (char *)&link;
    if (ioctl(handle, SIOCETHTOOL, &request) == 0) {
        const unsigned int mbit = ethtool_cmd_speed(&link);
        if (mbit > 0 && mbit != (unsigned int)SPEED_UNKNOWN && mbit != 0xffffu)
            snprintf(speed, sizeof speed, " %u Mb/s", mbit);
    }
    char one[96];
    if (ioctl(handle, SIOCGIFMTU, &request) == 0)
        snprintf(one, sizeof one, "%.15s%s mtu %d", name, speed, request.ifr_mtu);
    else
        snprintf(one, sizeof one, "%.15s%s", name, speed);
    add(out, size, one);
}

static void describe_infiniband(char *out, size_t size) {
    static const char base[] = "/sys/class/infiniband";
    DIR *directory = opendir(base);
    if (directory == NULL) return;
    for (const struct dirent *entry = readdir(directory); entry != NULL;
         entry = readdir(directory)) {
        char path[320], rate[64] = "", one[128];
        if (entry->d_name[0] == '.') continue;
        snprintf(path, sizeof path, "%s/%.60s/ports/1/rate", base, entry->d_name);
        FILE *file = fopen(path, "r");
        if (file != NULL) {
            if (fgets(rate, sizeof rate, file) != NULL) rate[strcspn(rate, "\n(")] = 0;
            fclose(file);
        }
        snprintf(one, sizeof one, "infiniband %.40s %s", entry->d_name, rate);
        add(out, size, one);
    }
    closedir(directory);
}

void dl_mpi_describe_nics(char *text, size_t size) {
    struct if_nameindex *all = if_nameindex();
    const int handle = socket(AF_INET, SOCK_DGRAM, 0);
    text[0] = 0;
    for (const struct if_nameindex *i = all; i != NULL && i->if_index != 0 && handle >= 0; i++)
        describe_interface(handle, i->if_name, text, size);
    if (handle >= 0) close(handle);
    if (all != NULL) if_freenameindex(all);
    describe_infiniband(text, size);
    if (text[0] == 0) add(text, size, "none but loopback");
}

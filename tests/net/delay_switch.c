/* delay_switch N DELAY_US - a switch in user space for the test network: makes taps t1..tN, passes
 * Ethernet frames between them (to the tap whose number is the last byte of the address, or to
 * all), each DELAY_US later. Prints "ready" when the taps are there. It does not limit the rate:
 * the token buckets of the hosts do. The kernel's netem would do this where it is built in;
 * /dev/net/tun is there more often.
 *
 * It looks without sleeping for LINGER_NS after the last frame, because waking from a sleep takes
 * tens of microseconds, which would add to the delay. */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <linux/if_tun.h>
#include <linux/virtio_net.h>
#include <net/if.h>
#include <poll.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <time.h>
#include <unistd.h>

enum { TAPS_MAX = 16, FRAME_BYTES = 70000, QUEUE = 4096, HEADER = sizeof(struct virtio_net_hdr) };
#define SECOND_NS INT64_C(1000000000)

struct frame {
    int64_t due_ns;
    size_t bytes;
    unsigned char *data;
};
struct queue { /* of one destination; all delays are alike, so what comes first is due first */
    struct frame frames[QUEUE];
    size_t first, count;
};

static struct queue queues[TAPS_MAX];
static struct pollfd taps[TAPS_MAX];
static int tap_count;

static int64_t now_ns(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return t.tv_sec * SECOND_NS + t.tv_nsec;
}

/* With offloads, a frame may hold 64 KiB of TCP, which the receiver splits. */
static int open_tap(int number) {
    struct ifreq request = {.ifr_flags = IFF_TAP | IFF_NO_PI | IFF_VNET_HDR};
    int header = HEADER;
    const int handle = open("/dev/net/tun", O_RDWR | O_NONBLOCK | O_CLOEXEC);
    snprintf(request.ifr_name, sizeof request.ifr_name, "t%d", number);
    if (handle < 0 || ioctl(handle, TUNSETIFF, &request) < 0 ||
        ioctl(handle, TUNSETVNETHDRSZ, &header) < 0 ||
        ioctl(handle, TUNSETOFFLOAD, TUN_F_CSUM | TUN_F_TSO4 | TUN_F_TSO6) < 0) {
        fprintf(stderr, "delay_switch: tap %d: %s\n", number, strerror(errno));
        exit(1);
    }
    return handle;
}

static void put(int to, const unsigned char *data, size_t bytes, int64_t due_ns) {
    struct queue *q = &queues[to];
    if (q->count == QUEUE) return; /* as a switch does: TCP retransmits */
    struct frame *f = &q->frames[(q->first + q->count) % QUEUE];
    f->data = malloc(bytes);
    if (f->data == NULL) return;
    memcpy(f->data, data, bytes);
    f->bytes = bytes;
    f->due_ns = due_ns;
    q->count++;
}

/* Sends the frames that are due. Returns the time of the next one, or INT64_MAX. */
static int64_t deliver(void) {
    int64_t next_ns = INT64_MAX;
    for (int to = 0; to < tap_count; to++) {
        struct queue *q = &queues[to];
        for (; q->count > 0; q->count--, q->first = (q->first + 1) % QUEUE) {
            struct frame *f = &q->frames[q->first];
            if (f->due_ns > now_ns()) break;
            if (write(taps[to].fd, f->data, f->bytes) < 0 && errno == EAGAIN) break;
            free(f->data);
        }
        if (q->count > 0 && q->frames[q->first].due_ns < next_ns)
            next_ns = q->frames[q->first].due_ns;
    }
    return next_ns;
}

static void take_in(int from, int64_t delay_ns) {
    static unsigned char buffer[FRAME_BYTES];
    for (int burst = 0; burst < 64; burst++) {
        const ssize_t got = read(taps[from].fd, buffer, sizeof buffer);
        if (got < (ssize_t)HEADER + 14) return;
        const unsigned char *address = buffer + HEADER;
        const int64_t due_ns = now_ns() + delay_ns;
        for (int to = 0; to < tap_count; to++) {
            const int all = (address[0] & 1) != 0;
            if (to != from && (all || address[5] == to + 1)) put(to, buffer, (size_t)got, due_ns);
        }
    }
}

int main(int argc, char **argv) {
    static const int64_t LINGER_NS = 300000;
    if (argc != 3 || atoi(argv[1]) < 2 || atoi(argv[1]) > TAPS_MAX) {
        fprintf(stderr, "usage: delay_switch N DELAY_US (2 to %d)\n", TAPS_MAX);
        return 2;
    }
    tap_count = atoi(argv[1]);
    const int64_t delay_ns = (int64_t)(1000 * strtod(argv[2], NULL));
    prctl(PR_SET_TIMERSLACK, 1UL);
    for (int i = 0; i < tap_count; i++)
        taps[i] = (struct pollfd){.fd = open_tap(i + 1), .events = POLLIN};
    printf("ready\n");
    fflush(stdout);
    for (int64_t busy_ns = 0;;) {
        const int64_t next_ns = deliver(), here_ns = now_ns();
        int64_t wait_ns = next_ns == INT64_MAX ? SECOND_NS : next_ns - here_ns;
        if (here_ns - busy_ns < LINGER_NS || wait_ns < LINGER_NS) wait_ns = 0;
        const struct timespec wait = {.tv_sec = wait_ns / SECOND_NS,
                                      .tv_nsec = wait_ns % SECOND_NS};
        if (ppoll(taps, (nfds_t)tap_count, &wait, NULL) <= 0) continue;
        busy_ns = now_ns();
        for (int i = 0; i < tap_count; i++) {
            if (taps[i].revents != 0) take_in(i, delay_ns);
        }
    }
}

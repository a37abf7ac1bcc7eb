/* probe_nccl_meet.c - TCP connections between rank 0 and the other ranks. Messages are a few bytes
 * between blocks, never inside one. All ranks run the same program on the same architecture:
 * numbers are sent in their memory layout. See probe_nccl.h. */
#define _GNU_SOURCE /* POLLRDHUP */
#include "calibrate/probes/nccl/probe_nccl.h"

#include <errno.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

enum { MAX_RANKS = 4096 };
static const double MEET_S = 60; /* time-out of the rendezvous */

static int connections[MAX_RANKS]; /* rank 0: to each rank; the others: [0] alone */

static const struct dl_members everyone = {1 << 20, 1 << 20};

bool dl_is_member(const struct dl_meeting *m, const struct dl_members *members, int rank) {
    return rank / m->per_node < members->nodes && rank % m->per_node < members->per_node;
}

static enum dl_code gone(int rank, struct dl_err *err) {
    return dl_fail(err, DL_ERR_BACKEND,
                   "rank %d of %d is gone: it exited, or its node failed; see its own message",
                   rank, dl_meeting.ranks);
}

static bool put(int fd, const void *bytes, size_t size) {
    for (size_t done = 0; done < size;) {
        const ssize_t sent = send(fd, (const char *)bytes + done, size - done, MSG_NOSIGNAL);
        if (sent < 0 && errno == EINTR) continue;
        if (sent <= 0) return false;
        done += (size_t)sent;
    }
    return true;
}

static bool get(int fd, void *bytes, size_t size) {
    for (size_t done = 0; done < size;) {
        const ssize_t got = recv(fd, (char *)bytes + done, size - done, 0);
        if (got < 0 && errno == EINTR) continue;
        if (got <= 0) return false;
        done += (size_t)got;
    }
    return true;
}

static void at_once(int fd) {
    const int yes = 1;
    setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &yes, sizeof yes);
}

static enum dl_code receive_all(struct dl_err *err) {
    const double start = dl_now_s();
    for (int here = 1; here < dl_meeting.ranks;) {
        struct pollfd waiting = {.fd = dl_meeting.listener, .events = POLLIN};
        if (dl_now_s() - start > MEET_S) {
            return dl_fail(err, DL_ERR_BACKEND,
                           "only %d of %d ranks connected within %.0f s (port %d of %s; is there a "
                           "firewall between the nodes?)",
                           here, dl_meeting.ranks, MEET_S, dl_meeting.port, dl_meeting.host);
        }
        if (poll(&waiting, 1, 200) <= 0) continue;
        const int fd = accept(dl_meeting.listener, NULL, NULL);
        int rank = -1;
        if (fd < 0) continue;
        at_once(fd);
        if (!get(fd, &rank, sizeof rank) || rank < 1 || rank >= dl_meeting.ranks ||
            connections[rank] >= 0) {
            close(fd); /* not a rank of this run */
            continue;
        }
        connections[rank] = fd;
        here++;
    }
    return DL_OK;
}

static int try_connect(void) {
    struct addrinfo wanted = {.ai_family = AF_UNSPEC, .ai_socktype = SOCK_STREAM}, *list = NULL;
    char port[16];
    int fd = -1;
    snprintf(port, sizeof port, "%d", dl_meeting.port);
    if (getaddrinfo(dl_meeting.host, port, &wanted, &list) != 0) return -1;
    for (const struct addrinfo *a = list; a != NULL && fd < 0; a = a->ai_next) {
        fd = socket(a->ai_family, a->ai_socktype, a->ai_protocol);
        if (fd < 0 || connect(fd, a->ai_addr, a->ai_addrlen) == 0) continue;
        close(fd);
        fd = -1;
    }
    freeaddrinfo(list);
    return fd;
}

static enum dl_code go_to_root(struct dl_err *err) {
    const struct timespec pause = {.tv_nsec = 50000000};
    const double start = dl_now_s();
    do {
        const int fd = try_connect();
        if (fd >= 0) {
            at_once(fd);
            connections[0] = fd;
            return put(fd, &dl_meeting.rank, sizeof dl_meeting.rank) ? DL_OK : gone(0, err);
        }
        nanosleep(&pause, NULL);
    } while (dl_now_s() - start < MEET_S);
    return dl_fail(err, DL_ERR_BACKEND, "rank %d cannot reach rank 0 at %s, port %d, within %.0f s",
                   dl_meeting.rank, dl_meeting.host, dl_meeting.port, MEET_S);
}

enum dl_code dl_meet(const struct dl_meeting *meeting, struct dl_err *err) {
    dl_meeting = *meeting;
    if (meeting->ranks > MAX_RANKS)
        return dl_fail(err, DL_ERR_BACKEND, "%d ranks; at most %d", meeting->ranks, MAX_RANKS);
    for (int i = 0; i < MAX_RANKS; i++) connections[i] = -1;
    if (meeting->ranks == 1) return DL_OK;
    return meeting->rank == 0 ? receive_all(err) : go_to_root(err);
}

double dl_meet_patience_s(void) {
    /* a collective of the largest size over a slow network takes a second or two */
    static const double USUAL_S = 40;
    const char *text = getenv("DLMODEL_PATIENCE_S");
    const double wanted_s = text == NULL ? 0 : strtod(text, NULL);
    return wanted_s > 0 ? wanted_s : USUAL_S;
}

/* Whether data (or the end of the connection) arrives from a rank within limit_s. */
static bool speaks(int rank, double limit_s) {
    struct pollfd asked = {.fd = connections[rank], .events = POLLIN};
    const double end_s = dl_now_s() + limit_s;
    for (double left_s = limit_s; left_s >= 0; left_s = end_s - dl_now_s()) {
        const int ready = poll(&asked, 1, (int)(1e3 * left_s));
        if (ready > 0) return true;
        if (ready == 0) break;
    }
    return false;
}

/* Rank 0 waits for the others one by one; they wait for it without a limit, because it may measure
 * without them. */
static enum dl_code hear(int rank, void *bytes, size_t size, struct dl_err *err) {
    const double limit_s = dl_meet_patience_s();
    if (!speaks(rank, limit_s))
        return dl_fail(err, DL_ERR_BACKEND, "rank %d of %d hangs: it has not answered for %.0f s",
                       rank, dl_meeting.ranks, limit_s);
    return get(connections[rank], bytes, size) ? DL_OK : gone(rank, err);
}

enum dl_code dl_meet_blame(const struct dl_members *members, const char *what, struct dl_err *err) {
    static const double GRACE_S = 2;    /* all ranks began to wait at about the same time */
    static const double VERDICT_S = 10; /* until rank 0 has polled all ranks and exits */
    const double limit_s = dl_meet_patience_s();
    double word = 0;
    if (dl_meeting.rank != 0) {
        /* rank 0 learns that this rank waits too; exiting now would look like a failure */
        put(connections[0], &word, sizeof word);
        if (!speaks(0, limit_s + VERDICT_S))
            return dl_fail(err, DL_ERR_BACKEND, "rank 0 of %d hangs: %s has not ended after %.0f s",
                           dl_meeting.ranks, what, limit_s);
        return dl_fail(err, DL_ERR_BACKEND, "rank %d of %d: %s has not ended after %.0f s",
                       dl_meeting.rank, dl_meeting.ranks, what, limit_s);
    }
    for (int rank = 1; rank < dl_meeting.ranks; rank++) {
        if (!dl_is_member(&dl_meeting, members, rank)) continue;
        if (!speaks(rank, GRACE_S))
            return dl_fail(err, DL_ERR_BACKEND,
                           "rank %d of %d hangs: %s has not ended after %.0f s, and only this rank "
                           "does not wait for it",
                           rank, dl_meeting.ranks, what, limit_s);
        if (!get(connections[rank], &word, sizeof word)) return gone(rank, err);
    }
    return dl_fail(err, DL_ERR_BACKEND,
                   "%s has not ended after %.0f s, and every rank waits for it: NCCL or the "
                   "network hangs (NCCL_DEBUG=INFO shows more)",
                   what, limit_s);
}

static enum dl_code exchange(const struct dl_members *members, bool sum, double *value,
                             struct dl_err *err) {
    double all = *value, one = 0;
    const struct dl_members *m = members != NULL ? members : &everyone;
    if (dl_meeting.rank != 0) {
        if (!put(connections[0], value, sizeof *value) ||
            !get(connections[0], value, sizeof *value))
            return gone(0, err);
        return DL_OK;
    }
    for (int rank = 1; rank < dl_meeting.ranks; rank++) {
        if (!dl_is_member(&dl_meeting, m, rank)) continue;
        DL_TRY(hear(rank, &one, sizeof one, err));
        all = sum ? all + one : one > all ? one : all;
    }
    *value = all;
    return dl_meet_tell(m, value, sizeof *value, err);
}

enum dl_code dl_meet_max(const struct dl_members *members, double *value, struct dl_err *err) {
    return exchange(members, false, value, err);
}
enum dl_code dl_meet_sum(const struct dl_members *members, double *value, struct dl_err *err) {
    return exchange(members, true, value, err);
}

enum dl_code dl_meet_tell(const struct dl_members *members, void *bytes, size_t size,
                          struct dl_err *err) {
    const struct dl_members *m = members != NULL ? members : &everyone;
    if (dl_meeting.rank != 0) return get(connections[0], bytes, size) ? DL_OK : gone(0, err);
    for (int rank = 1; rank < dl_meeting.ranks; rank++) {
        if (dl_is_member(&dl_meeting, m, rank) && !put(connections[rank], bytes, size))
            return gone(rank, err);
    }
    return DL_OK;
}

enum dl_code dl_meet_alive(struct dl_err *err) {
    for (int rank = 0; rank < dl_meeting.ranks; rank++) {
        struct pollfd asked = {.fd = connections[rank], .events = POLLRDHUP};
        if (asked.fd >= 0 && poll(&asked, 1, 0) > 0 &&
            (asked.revents & (POLLRDHUP | POLLHUP | POLLERR)))
            return gone(rank, err);
    }
    return DL_OK;
}

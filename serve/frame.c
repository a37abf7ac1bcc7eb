/* frame.c - whole frames over a blocking socket. */
#include "serve/frame.h"

#include <errno.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <sys/uio.h>

static bool read_all(int fd, char *bytes, size_t count) {
    while (count > 0) {
        const ssize_t done = recv(fd, bytes, count, 0);
        if (done < 0 && errno == EINTR) continue;
        if (done <= 0) return false;
        bytes += done;
        count -= (size_t)done;
    }
    return true;
}

ssize_t dl_frame_send(int fd, const struct dl_frame *frame, const void *bytes, size_t sent) {
    const size_t head = sizeof *frame, skipped = sent > head ? sent - head : 0;
    struct iovec parts[2];
    int count = 0;
    if (sent < head) parts[count++] = (struct iovec){(char *)(uintptr_t)frame + sent, head - sent};
    if (frame->bytes > skipped)
        parts[count++] =
            (struct iovec){(char *)(uintptr_t)bytes + skipped, (size_t)frame->bytes - skipped};
    const struct msghdr message = {.msg_iov = parts, .msg_iovlen = (size_t)count};
    ssize_t done;
    do done = sendmsg(fd, &message, MSG_NOSIGNAL);
    while (done < 0 && errno == EINTR);
    return done;
}

bool dl_frame_write(int fd, const struct dl_frame *frame, const void *bytes) {
    const size_t all = sizeof *frame + (size_t)frame->bytes;
    for (size_t sent = 0; sent < all;) {
        const ssize_t done = dl_frame_send(fd, frame, bytes, sent);
        if (done <= 0) return false;
        sent += (size_t)done;
    }
    return true;
}

bool dl_frame_read(int fd, struct dl_frame *frame, char **bytes) {
    *bytes = NULL;
    if (!read_all(fd, (char *)frame, sizeof *frame) || frame->bytes > DL_FRAME_MAX_BYTES)
        return false;
    *bytes = malloc((size_t)frame->bytes + 1);
    if (*bytes == NULL) return false;
    (*bytes)[frame->bytes] = '\0';
    if (read_all(fd, *bytes, (size_t)frame->bytes)) return true;
    free(*bytes);
    *bytes = NULL;
    return false;
}

/* frame.c - whole frames over a blocking socket. */
#include "serve/frame.h"

#include <errno.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

static bool write_all(int fd, const char *bytes, size_t count) {
    while (count > 0) {
        const ssize_t done = send(fd, bytes, count, MSG_NOSIGNAL);
        if (done < 0 && errno == EINTR) continue;
        if (done <= 0) return false;
        bytes += done;
        count -= (size_t)done;
    }
    return true;
}

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

bool dl_frame_write(int fd, const struct dl_frame *frame, const void *bytes) {
    return write_all(fd, (const char *)frame, sizeof *frame) &&
           write_all(fd, bytes, (size_t)frame->bytes);
}

bool dl_frame_read(int fd, struct dl_frame *frame, char **bytes) {
    *bytes = NULL;
    if (!read_all(fd, (char *)frame, sizeof *frame) || frame->bytes > DL_FRAME_MOST_BYTES)
        return false;
    *bytes = malloc((size_t)frame->bytes + 1);
    if (*bytes == NULL) return false;
    (*bytes)[frame->bytes] = '\0';
    if (read_all(fd, *bytes, (size_t)frame->bytes)) return true;
    free(*bytes);
    *bytes = NULL;
    return false;
}

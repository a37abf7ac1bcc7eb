/* frame.h - messages between the front end and its worker processes: a fixed header, then bytes.
 * Both ends are the same program on the same machine, so the header is a structure. */
#ifndef DL_SERVE_FRAME_H
#define DL_SERVE_FRAME_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

enum { DL_FRAME_MAX_BYTES = 256 << 20 };

enum dl_frame_kind { DL_FRAME_REQUEST, DL_FRAME_PROGRESS, DL_FRAME_ANSWER };

enum dl_media { DL_MEDIA_JSON, DL_MEDIA_PROBLEM, DL_MEDIA_TEXT, DL_MEDIA_HTML, DL_MEDIA_CSV };

struct dl_frame {
    uint32_t kind;   /* enum dl_frame_kind */
    uint32_t route;  /* of a request: its row in dl_routes */
    uint32_t status; /* of an answer: the HTTP status */
    uint32_t media;  /* of an answer: enum dl_media */
    uint32_t exit;   /* of an answer: the exit status of the command line */
    uint32_t query;  /* of a request: offset of the body, after path and query */
    uint64_t bytes;  /* payload length; at most DL_FRAME_MAX_BYTES */
};

/* Sends the rest of header and payload after the first `sent` bytes, in one call; returns as
 * send(). */
ssize_t dl_frame_send(int fd, const struct dl_frame *frame, const void *bytes, size_t sent);

/* Whole frames over a blocking socket. dl_frame_read allocates *bytes with malloc and appends a
 * NUL. false: the peer closed the socket, the frame is too large, or memory is exhausted. */
bool dl_frame_write(int fd, const struct dl_frame *frame, const void *bytes);
bool dl_frame_read(int fd, struct dl_frame *frame, char **bytes);

#endif

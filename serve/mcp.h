/* mcp.h - the Model Context Protocol: messages of JSON-RPC 2.0 in, replies out. Tools are routes of
 * the service: arguments are the body of the HTTP request, and the text of a result is its answer.
 * Protocol: https://modelcontextprotocol.io/specification */
#ifndef DL_SERVE_MCP_H
#define DL_SERVE_MCP_H

#include "serve/routes.h"

enum { DL_MCP_MESSAGE_BYTES = 32 << 20 };

/* The reply to a message, or to a batch of messages, in one line; NULL where none is due: a
 * notification. Errors are replies. */
const char *dl_mcp_reply(const struct dl_service *service, const char *message, size_t bytes,
                         struct dl_arena *arena);
/* The reply to a message that is too long to be read. */
const char *dl_mcp_too_long(struct dl_arena *arena);

#endif

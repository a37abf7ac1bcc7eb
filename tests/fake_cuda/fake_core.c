/* fake_core.c - numbers, memory and clock of the fake device. */
#define _GNU_SOURCE /* memfd_create */
#include "tests/fake_cuda/fake_gpu.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "tests/fake_cuda/fake_memory.h"

enum { MOST_AREAS = 4096, MOST_OPS = 2048 };
static const double LATENCY_S = 4e-6, BYTES_PER_S = 800e9;

static struct fake_area areas[MOST_AREAS];
static struct fake_op ops[MOST_OPS];
static size_t op_count, op_next;
static unsigned sequence;
static double clock_s;
bool (*fake_pending)(void);

size_t fake_bytes(enum fake_type type) { return type == FAKE_F32 ? 4 : type == FAKE_F8 ? 1 : 2; }

int fake_capability(void) { return fake_number("FAKE_CUDA_CAPABILITY", 70); }

static void fields(enum fake_type type, int *exponent, int *fraction) {
    *exponent = type == FAKE_F16 ? 5 : type == FAKE_BF16 ? 8 : 4;
    *fraction = type == FAKE_F16 ? 10 : type == FAKE_BF16 ? 7 : 3;
}

double fake_decode(enum fake_type type, const void *in) {
    const unsigned char *b = in;
    float x;
    int exponent, fraction;
    if (type == FAKE_F32) {
        memcpy(&x, in, sizeof x);
        return (double)x;
    }
    fields(type, &exponent, &fraction);
    const unsigned bits = type == FAKE_F8 ? b[0] : (unsigned)b[0] | (unsigned)b[1] << 8;
    const unsigned e = bits >> fraction & ((1u << exponent) - 1), f = bits & ((1u << fraction) - 1);
    const int bias = (1 << (exponent - 1)) - 1;
    const double magnitude = e == 0 ? f * pow(2, 1 - bias - fraction)
                                    : (1 + f * pow(2, -fraction)) * pow(2, (int)e - bias);
    return bits >> (exponent + fraction) & 1 ? -magnitude : magnitude;
}

/* The nearest representable value, found by search: slow, and independent of the code of the
 * probes. */
void fake_encode(enum fake_type type, double value, void *out) {
    unsigned char b[2] = {0};
    int exponent, fraction;
    if (type == FAKE_F32) {
        const float x = (float)value;
        memcpy(out, &x, sizeof x);
        return;
    }
    fields(type, &exponent, &fraction);
    unsigned low = 0, high = ((1u << exponent) - 1) << fraction;
    const unsigned sign = value < 0 ? 1u << (exponent + fraction) : 0;
    while (high - low > 1) {
        const unsigned middle = (low + high) / 2;
        b[0] = (unsigned char)middle;
        b[1] = (unsigned char)(middle >> 8);
        if (fake_decode(type, b) <= fabs(value))
            low = middle;
        else
            high = middle;
    }
    double around[2];
    for (unsigned i = 0; i < 2; i++) {
        b[0] = (unsigned char)(low + i);
        b[1] = (unsigned char)((low + i) >> 8);
        around[i] = fake_decode(type, b);
    }
    const unsigned bits =
        (fabs(value) - around[0] > around[1] - fabs(value) ? low + 1 : low) | sign;
    b[0] = (unsigned char)bits;
    b[1] = (unsigned char)(bits >> 8);
    memcpy(out, b, fake_bytes(type));
}

/* ---- memory ---- */

struct fake_area *fake_area_of(const void *address) {
    for (size_t i = 0; i < MOST_AREAS; i++) {
        struct fake_area *a = &areas[i];
        if (a->base != NULL && (const char *)address >= a->base &&
            (const char *)address < a->base + a->bytes)
            return a;
    }
    return NULL;
}

void *fake_area_make(size_t bytes) {
    for (size_t i = 0; i < MOST_AREAS; i++) {
        struct fake_area *a = &areas[i];
        if (a->base != NULL) continue;
        const int fd = memfd_create("fake", MFD_CLOEXEC);
        if (fd < 0 || ftruncate(fd, (off_t)bytes) != 0) return NULL;
        void *base = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_NORESERVE, fd, 0);
        if (base == MAP_FAILED) {
            close(fd);
            return NULL;
        }
        *a = (struct fake_area){.base = base, .bytes = bytes, .fd = fd};
        return base;
    }
    return NULL;
}

static void forget(const char *from,
                   const char *to) { /* drops the rules of results that lie entirely inside */
    for (size_t i = 0; i < op_count; i++) {
        if (ops[i].out != NULL && ops[i].out >= from &&
            ops[i].out + ops[i].count * fake_bytes(ops[i].type) <= to)
            ops[i].out = NULL;
    }
}

bool fake_area_free(void *base) {
    struct fake_area *a = fake_area_of(base);
    if (a == NULL || a->base != base) return false;
    forget(a->base, a->base + a->bytes);
    munmap(a->base, a->bytes);
    close(a->fd);
    *a = (struct fake_area){.base = NULL};
    return true;
}

size_t fake_area_bytes(void) {
    size_t sum = 0;
    for (size_t i = 0; i < MOST_AREAS; i++) sum += areas[i].base != NULL ? areas[i].bytes : 0;
    return sum;
}

/* The stored content of the memory, without the rules. */
static const char *stored(const struct fake_area *a, const char *address) {
    const size_t offset = (size_t)(address - a->base);
    return a->period > 0 && offset < a->filled ? a->base + offset % a->period : address;
}

bool fake_pattern(const void *address, int *fd, size_t *period, size_t *offset) {
    const struct fake_area *a = fake_area_of(address);
    if (a == NULL || a->period == 0) return false;
    *fd = a->fd;
    *period = a->period;
    *offset = (size_t)((const char *)address - a->base);
    return true;
}

void fake_record(struct fake_op op) {
    struct fake_area *a = fake_area_of(op.out);
    const size_t bytes = op.count * fake_bytes(op.type);
    if (a == NULL || op.out + bytes > a->base + a->bytes) {
        fprintf(stderr, "the fake GPU: a call writes outside its memory\n");
        abort();
    }
    a->written = true;
    op.sequence = ++sequence;
    /* Earlier results at the same address: the last one may be an operand, older ones are dropped.
     */
    size_t last = MOST_OPS;
    for (size_t i = 0; i < op_count; i++) {
        if (ops[i].out != op.out || ops[i].count != op.count || ops[i].type != op.type) continue;
        if (last < MOST_OPS) ops[ops[i].sequence > ops[last].sequence ? last : i].out = NULL;
        if (last == MOST_OPS || ops[i].sequence > ops[last].sequence) last = i;
    }
    if (op_count < MOST_OPS) {
        ops[op_count++] = op;
    } else {
        for (size_t tries = 0; tries < MOST_OPS && ops[op_next].out != NULL; tries++)
            op_next = (op_next + 1) % MOST_OPS;
        ops[op_next] = op;
        op_next = (op_next + 1) % MOST_OPS;
    }
}

static const struct fake_op *newest(const char *address, unsigned before) {
    const struct fake_op *found = NULL;
    for (size_t i = 0; i < op_count; i++) {
        const struct fake_op *op = &ops[i];
        if (op->out == NULL || op->sequence >= before || address < op->out ||
            address >= op->out + op->count * fake_bytes(op->type))
            continue;
        if (found == NULL || op->sequence > found->sequence) found = op;
    }
    return found;
}

double fake_load(const void *array, enum fake_type type, size_t index, unsigned before) {
    const char *address = (const char *)array + index * fake_bytes(type);
    static const struct fake_area *last;
    const struct fake_area *a = last != NULL && last->base != NULL && address >= last->base &&
                                        address < last->base + last->bytes
                                    ? last
                                    : fake_area_of(address);
    if (a == NULL) {
        fprintf(stderr, "the fake GPU: a call reads outside its memory\n");
        abort();
    }
    last = a;
    const struct fake_op *op = a->written ? newest(address, before) : NULL;
    if (op == NULL) return fake_decode(type, stored(a, address));
    return op->value(op, (size_t)(address - op->out) / fake_bytes(op->type));
}

/* ---- copies ---- */

static double copied(const struct fake_op *op, size_t index) {
    return fake_load(op->in[0], op->type, index, op->sequence);
}
static double from_memory(const struct fake_op *op, size_t index) {
    return fake_decode(op->type, op->out + index * 4);
}
static double from_host(const struct fake_op *op, size_t index) {
    return fake_decode(op->type, (const char *)op->in[0] + index * 4);
}

bool fake_to_device(void *to, const void *from, size_t bytes) {
    enum { KEPT = 8 << 20 };
    struct fake_area *a = fake_area_of(to);
    if (a == NULL) return false;
    if (bytes > KEPT) { /* where the host has it, it stays */
        fake_record((struct fake_op){
            .out = to, .count = bytes / 4, .type = FAKE_F32, .value = from_host, .in = {from}});
        return true;
    }
    forget(to, (char *)to + bytes);
    memcpy(to, from, bytes);
    if (a->written) { /* results of earlier calls may lie here and beyond */
        fake_record((struct fake_op){
            .out = to, .count = bytes / 4, .type = FAKE_F32, .value = from_memory});
        return true;
    }
    if (to == a->base) a->period = a->filled = bytes;
    return true;
}

bool fake_on_device(void *to, const void *from, size_t bytes) {
    struct fake_area *a = fake_area_of(to);
    if (a == NULL || fake_area_of(from) == NULL) return false;
    const size_t offset = (size_t)((char *)to - a->base);
    if (from == a->base && a->period > 0 && offset == a->filled && offset % a->period == 0) {
        a->filled += bytes;
        return true;
    }
    fake_record((struct fake_op){
        .out = to, .count = bytes / 4, .type = FAKE_F32, .value = copied, .in = {from}});
    return true;
}

bool fake_to_host(void *to, const void *from, size_t bytes) {
    const struct fake_area *a = fake_area_of(from);
    if (a == NULL) return false;
    const struct fake_op *op = a->written ? newest(from, UINT32_MAX) : NULL;
    if (op == NULL && a->period > 0) {
        for (size_t done = 0; done < bytes;) {
            const char *at = stored(a, (const char *)from + done);
            const size_t room = (size_t)(a->base + a->period - at),
                         part = room < bytes - done ? room : bytes - done;
            memcpy((char *)to + done, at, part);
            done += part;
        }
        return true;
    }
    if (op == NULL) {
        memcpy(to, from, bytes);
        return true;
    }
    const size_t each = fake_bytes(op->type);
    for (size_t done = 0; done + each <= bytes; done += each) {
        double value = fake_load((const char *)from + done, op->type, 0, UINT32_MAX);
        if (fake_plays("wrong")) value += 100;
        fake_encode(op->type, value, (char *)to + done);
    }
    return true;
}

/* ---- time ---- */

double fake_clock(void) { return clock_s; }
void fake_spend(double seconds) { clock_s += seconds; }

void fake_kernel(double flop, double bytes, enum fake_type type, bool tf32, double m, double n,
                 double k) {
    static const double rates[] = {
        [FAKE_F32] = 14e12, [FAKE_F16] = 100e12, [FAKE_BF16] = 200e12, [FAKE_F8] = 800e12};
    static unsigned noise = 12345;
    static const double HALF = 48, SCATTER = 0.02, TF32 = 8;
    noise = noise * 1103515245u + 12345u;
    const double scatter = 1 + SCATTER * ((double)(noise >> 16 & 1023) / 1023.0 - 0.5);
    const double rate =
        rates[type] * (tf32 ? TF32 : 1) / ((1 + HALF / m) * (1 + HALF / n) * (1 + HALF / k));
    clock_s += (LATENCY_S + fmax(flop / rate, bytes / BYTES_PER_S)) * scatter *
               (fake_plays("hot") ? 2 : 1);
}

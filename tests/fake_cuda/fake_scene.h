/* fake_scene.h - the environment variables by which a test chooses what the fake device plays. In a
 * header, because the fakes of NVML and of the driver are loaded without the fake device's core.
 *
 * FAKE_CUDA: one of
 *   nodriver, nodevice, exclusive
 *   busy      a process uses the device from the beginning
 *   shared    a process comes during the samples
 *   loaded    the device is 60 % busy, though no process is listed
 *   hot       clocks are throttled
 *   wrong     every result is wrong
 *   small     128 MiB of memory
 *   die       NCCL: rank FAKE_RANK is killed at its FAKE_CALL-th collective
 *   mute      that rank never answers
 *   late      that rank never joins
 *   stopped   that rank hangs before it joins
 * FAKE_CUDA_COUNT: devices, default 1. FAKE_CUDA_CAPABILITY: 70 (default), 80 or 90.
 * FAKE_CUDA_LINKS: mesh (NVLink 2 between all; default with several devices), switch or none.
 * FAKE_CUDA_CONTEXT: set by the fake runtime once this process uses the device. */
#ifndef TESTS_FAKE_CUDA_FAKE_SCENE_H
#define TESTS_FAKE_CUDA_FAKE_SCENE_H

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

static inline bool fake_plays(const char *scene) {
    const char *played = getenv("FAKE_CUDA");
    return played != NULL && strcmp(played, scene) == 0;
}

static inline int fake_number(const char *variable, int fallback) {
    const char *text = getenv(variable);
    return text == NULL ? fallback : atoi(text);
}

#endif

/* SPDX-License-Identifier: Apache-2.0 */
/* An example of a scheduling policy of one's own: the task with the least work first, on the first
   device where it fits. Build: cc -shared -fPIC -o shortest_first.so shortest_first.c
   Options: "broken" and "idle" make it break the rules, for tests. */
#include <amasia/device_policy.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct waiting {
  amasia_policy_task task;
  struct waiting *next;
};

struct state {
  struct waiting *line; /* the least work first */
  int broken, idle;
};

static void *init(const char *options, char *error, size_t error_size) {
  struct state *state = calloc(1, sizeof *state);
  if (state == NULL) return NULL;
  state->broken = strcmp(options, "broken") == 0;
  state->idle = strcmp(options, "idle") == 0;
  if (options[0] != 0 && !state->broken && !state->idle) {
    snprintf(error, error_size, "'%s' is not an option; it takes none", options);
    free(state);
    return NULL;
  }
  return state;
}

static void fini(void *opaque) {
  struct state *state = opaque;
  while (state->line != NULL) {
    struct waiting *gone = state->line;
    state->line = gone->next;
    free(gone);
  }
  free(state);
}

static void device(void *opaque, const amasia_policy_device *about) {
  (void)opaque;
  (void)about;
}

static void put(void *opaque, const amasia_policy_task *task) {
  struct state *state = opaque;
  struct waiting **at = &state->line;
  struct waiting *new_one = malloc(sizeof *new_one);
  if (new_one == NULL) abort();
  while (*at != NULL && (*at)->task.work <= task->work) at = &(*at)->next;
  new_one->task = *task;
  new_one->next = *at;
  *at = new_one;
}

static void leave(void *opaque, uint32_t client, uint64_t task) {
  struct state *state = opaque;
  for (struct waiting **at = &state->line; *at != NULL; at = &(*at)->next) {
    struct waiting *gone = *at;
    if (gone->task.client != client || gone->task.task != task) continue;
    *at = gone->next;
    free(gone);
    return;
  }
}

static int next(void *opaque, const amasia_policy_view *view, int64_t now_ns,
                amasia_policy_choice *choice) {
  struct state *state = opaque;
  (void)now_ns;
  if (state->idle) return 0;
  for (struct waiting *one = state->line; one != NULL; one = one->next) {
    for (uint32_t device = 0; device < 64; ++device) {
      if ((one->task.possible >> device & 1) == 0) continue;
      if (!state->broken && !view->fits(view->context, one->task.client, one->task.task, device)) {
        continue;
      }
      choice->client = one->task.client;
      choice->task = one->task.task;
      choice->device = device;
      return 1;
    }
  }
  return 0;
}

static const amasia_device_policy table = {.size = sizeof(amasia_device_policy),
                                           .abi = AMASIA_DEVICE_POLICY_ABI,
                                           .name = "shortest-first",
                                           .description = "the task with the least work first",
                                           .init = init,
                                           .fini = fini,
                                           .device = device,
                                           .put = put,
                                           .remove = leave,
                                           .next = next};

const amasia_device_policy *amasia_device_policy_entry(void) { return &table; }

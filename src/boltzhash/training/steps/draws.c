#include "draws.h"

#include <string.h>

#include "each_cpu.h"
#include "random.h"

FOR_EACH_CPU
void draw_numbers(const void *given, int half)
{
    const Drawing *t = given;
    size_t middle = t->n / 2 / (2 * STREAMS) * (2 * STREAMS), last = half ? t->n : middle;
    Random random = random_of(t->seed, half);
    for (size_t i = half ? middle : 0; i < last; i += 2 * STREAMS) {
        uint32_t a[STREAMS], b[STREAMS];
        float drawn[2 * STREAMS];
        draw(&random, a);
        draw(&random, b);
        if (t->are_normal)
            for (int stream = 0; stream < STREAMS; stream++)
                normals_of(a[stream], b[stream], &drawn[stream], &drawn[STREAMS + stream]);
        else
            for (int stream = 0; stream < STREAMS; stream++) {
                drawn[stream] = uniform_of(a[stream]);
                drawn[STREAMS + stream] = uniform_of(b[stream]);
            }
        if (last - i >= 2 * STREAMS)
            memcpy(t->out + i, drawn, sizeof drawn);
        else
            memcpy(t->out + i, drawn, (last - i) * sizeof *drawn);
    }
}

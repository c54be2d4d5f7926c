/* The vocabulary: words one after the other in UTF-8, and an open-addressed table of their numbers. */

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#define WORD_BYTES 8 /* a token is hashed that many bytes at a time, and has as many zeros after it */

typedef struct {
    uint32_t hash;
    int32_t number; /* -1: free */
} Slot;

typedef struct {
    char *bytes;
    size_t bytes_used, bytes_room;
    size_t *starts; /* of word i; starts[n_words] is where the next one goes */
    size_t n_words, words_room;
    size_t longest;
    Slot *slots;
    size_t n_slots; /* a power of two, at most half of it taken */
} Table;

static int grow(void **array, size_t *room, size_t needed, size_t item)
{
    if (needed <= *room)
        return 0;
    size_t larger = *room + *room / 2 + 64;
    if (larger < needed)
        larger = needed;
    if (larger > SIZE_MAX / 2 / item)
        return -1;
    void *moved = realloc(*array, larger * item);
    if (moved == NULL)
        return -1;
    *array = moved;
    *room = larger;
    return 0;
}

/* The token must be followed by WORD_BYTES zeros. */
static uint32_t hash_token(const char *token, size_t length)
{
    uint64_t hash = length * UINT64_C(0x9E3779B97F4A7C15);
    for (size_t i = 0; i < length; i += WORD_BYTES) {
        uint64_t part;
        memcpy(&part, token + i, sizeof part);
        hash = (hash ^ part) * UINT64_C(0xD6E8FEB86659FD93);
        hash ^= hash >> 32;
    }
    return (uint32_t)hash;
}

/* The slot of a token, or the free one where it belongs. */
static Slot *find(const Table *table, const char *token, size_t length, uint32_t hash)
{
    size_t mask = table->n_slots - 1;
    for (size_t at = hash & mask;; at = (at + 1) & mask) {
        Slot *slot = &table->slots[at];
        if (slot->number < 0)
            return slot;
        const size_t *start = &table->starts[slot->number];
        if (slot->hash == hash && start[1] - start[0] == length &&
            memcmp(table->bytes + start[0], token, length) == 0)
            return slot;
    }
}

static int resize_slots(Table *table, size_t n_slots)
{
    Slot *slots = malloc(n_slots * sizeof *slots);
    if (slots == NULL)
        return -1;
    for (size_t i = 0; i < n_slots; i++)
        slots[i].number = -1;
    for (size_t i = 0; i < table->n_slots; i++) {
        if (table->slots[i].number < 0)
            continue;
        size_t at = table->slots[i].hash & (n_slots - 1);
        while (slots[at].number >= 0)
            at = (at + 1) & (n_slots - 1);
        slots[at] = table->slots[i];
    }
    free(table->slots);
    table->slots = slots;
    table->n_slots = n_slots;
    return 0;
}

/* Store the next word; a slot that is taken then stands for the new number, as in a Python dict. */
static int append(Table *table, const char *token, size_t length, uint32_t hash)
{
    if (table->n_words >= INT32_MAX)
        return -1;
    if (2 * (table->n_words + 1) > table->n_slots && resize_slots(table, 2 * table->n_slots) < 0)
        return -1;
    if (grow((void **)&table->bytes, &table->bytes_room, table->bytes_used + length, 1) < 0 ||
        grow((void **)&table->starts, &table->words_room, table->n_words + 2,
             sizeof *table->starts) < 0)
        return -1;
    Slot *slot = find(table, token, length, hash);
    slot->hash = hash;
    slot->number = (int32_t)table->n_words;
    memcpy(table->bytes + table->bytes_used, token, length);
    table->bytes_used += length;
    table->starts[++table->n_words] = table->bytes_used;
    if (length > table->longest)
        table->longest = length;
    return 0;
}

/* Reads shardtool datasets, version 1.0: C99 and POSIX (mmap), no dependencies, little- or big-endian, 64-bit sizes.
 *
 * Written from format-spec.md and order-spec.md alone, with their terms; a `place` is a source position.
 *
 *     shardtool_open      reads and checks the manifest, nothing else
 *     shardtool_read      record i of a split: its frame, both CRCs checked
 *     shardtool_key, _image      from the index; each column is checked on first use
 *     shardtool_parse     the features of a record
 *     shardtool_find, _values, _class_id, _pixels, _array      from these features
 *     shardtool_index, _column, _cell, _lookup      the columns of an index, without its shard
 *     shardtool_verify    all damage of a dataset
 *     shardtool_order_*   the order of samples in an epoch
 *
 * It decodes raw pixels and arrays; images of other formats are returned as stored, for other libraries to decode.
 * Of zstd frames it checks the headers. Files are mapped: if one is truncated while it is read, the program ends with
 * SIGBUS. A shard is opened when one of its records is first read, so a dataset may be used by one thread at a time;
 * orders and permutations do not depend on a dataset.
 *
 * Functions that can fail return -1 and fill in the error; comments state other results.
 */
#ifndef SHARDTOOL_READER_H
#define SHARDTOOL_READER_H

#include <stddef.h>
#include <stdint.h>

typedef struct {
    const uint8_t *data;
    size_t size;
} shardtool_bytes;

/* `name` is the specification's, or one of
 *     Io          the operating system refused (no dataset.json, no permission, …)
 *     Memory      out of memory
 *     Argument    an invalid argument
 *     NotDecoded  the image or array passed all checks of this reader, which does not decode its format */
typedef struct {
    const char *name;
    const char *file; /* relative to the dataset's folder; valid until the dataset is closed */
    int64_t record;   /* number in the shard, or -1 */
    int64_t offset;   /* of the record's frame, or -1 */
    char text[200];   /* what was expected and found */
} shardtool_error;

/* --- datasets --- */

typedef struct shardtool_dataset shardtool_dataset;

int shardtool_open(const char *folder, shardtool_dataset **dataset, shardtool_error *error);
void shardtool_close(shardtool_dataset *dataset); /* NULL is fine */

size_t shardtool_split_count(const shardtool_dataset *dataset);
/* Returns the number of a split, or -1. */
int64_t shardtool_find_split(const shardtool_dataset *dataset, const char *name);
const char *shardtool_split_name(const shardtool_dataset *dataset, size_t split);
uint64_t shardtool_split_records(const shardtool_dataset *dataset, size_t split);
size_t shardtool_shard_count(const shardtool_dataset *dataset, size_t split);
const char *shardtool_shard_file(const shardtool_dataset *dataset, size_t split, size_t shard);
/* Changes if a record of the split or their order changes. */
uint32_t shardtool_fingerprint(const shardtool_dataset *dataset, size_t split);
/* Records of an opaque dataset have no features. */
int shardtool_is_opaque(const shardtool_dataset *dataset);
/* The feature that holds the image; its `data` is NULL without one. */
shardtool_bytes shardtool_image_name(const shardtool_dataset *dataset);
size_t shardtool_class_count(const shardtool_dataset *dataset);
shardtool_bytes shardtool_class_name(const shardtool_dataset *dataset, size_t class_id);
uint32_t shardtool_crc32c(const shardtool_dataset *dataset, shardtool_bytes bytes);

/* --- records --- */

/* Valid until the dataset is closed, like all pointers taken from it. */
typedef struct {
    shardtool_dataset *dataset;
    struct shardtool_shard *shard;
    uint64_t id;     /* in the split */
    uint64_t row;    /* in the shard */
    uint64_t offset; /* of its frame */
    shardtool_bytes data;
} shardtool_record;

enum { SHARDTOOL_TRUST_DATA = 1 }; /* do not check the CRC of a record's data */

int shardtool_read(shardtool_dataset *dataset, size_t split, uint64_t id, int flags, shardtool_record *record,
                   shardtool_error *error);
/* The file of its shard. */
const char *shardtool_file(const shardtool_record *record);
int shardtool_key(const shardtool_record *record, shardtool_bytes *key, shardtool_error *error);
/* Returns 1, or 0 if the record has no image. */
int shardtool_image(const shardtool_record *record, shardtool_bytes *image, shardtool_error *error);

/* --- features --- */

enum { SHARDTOOL_MISSING = 0, SHARDTOOL_BYTES = 1, SHARDTOOL_FLOAT = 2, SHARDTOOL_INT64 = 3 };

typedef struct {
    shardtool_bytes name;
    int kind;
    uint64_t count;       /* of values */
    shardtool_bytes body; /* the message that holds them; for shardtool_values, like the rest */
    int source;
    uint32_t run;
    uint64_t number;
} shardtool_feature;

/* Logical types: what byte strings of eight bytes hold. */
enum { SHARDTOOL_FLOAT64 = 1, SHARDTOOL_UINT64 = 2 };
/* Returns the logical type of the feature of this name; 0 if it has none. */
int shardtool_logical(const shardtool_dataset *dataset, shardtool_bytes name);

/* The features of a record, in byte order of their names. */
typedef struct {
    const shardtool_record *record;
    shardtool_feature *list;
    size_t count;
    uint8_t *names;
} shardtool_features;

/* Parses the record, which must outlive the features. They are to be freed, also after an error. */
int shardtool_parse(const shardtool_record *record, shardtool_features *features, shardtool_error *error);
void shardtool_free_features(shardtool_features *features);
/* Returns a feature, or NULL if the record does not have it. */
const shardtool_feature *shardtool_find(const shardtool_features *features, shardtool_bytes name);
/* Writes `count` values: shardtool_bytes, float or int64_t, by the feature's kind. */
void shardtool_values(const shardtool_feature *feature, void *values);
/* Writes `count` numbers of a feature of a logical type: double or uint64_t. Returns 1, or 0 if the values are not byte strings
 * of eight bytes. */
int shardtool_numbers(const shardtool_feature *feature, void *numbers);
/* Gets the value of a feature that has exactly one, of this kind. Returns 1, otherwise 0. */
int shardtool_one(const shardtool_features *features, shardtool_bytes name, int kind, void *value);
/* Gets the key from the features. If it is FILE#N, it is written to `number`, of the file's length + 24 bytes. */
shardtool_bytes shardtool_own_key(const shardtool_features *features, char *number);
/* Gets the image from the features. Returns 1, or 0 if the record has no image. */
int shardtool_own_image(const shardtool_features *features, shardtool_bytes *image);
/* Stored label − label_offset. Returns 1, or 0 without a class. */
int shardtool_class_id(const shardtool_features *features, int64_t *class_id);

typedef struct {
    uint64_t height, width;
    shardtool_bytes rgb; /* height × width × 3 bytes */
} shardtool_raw_pixels;

/* Returns 1, or 0 if the record has no image. If the image is not `raw`, the error is NotDecoded. */
int shardtool_pixels(const shardtool_features *features, shardtool_raw_pixels *pixels, shardtool_error *error);

typedef struct {
    uint64_t dimensions;
    int64_t *shape; /* to be freed by the caller, like `data` */
    shardtool_bytes dtype;
    uint8_t *data; /* the whole array in C order, little-endian */
    size_t size;
} shardtool_array;

/* Returns 1 if feature i names the codec of an array, with the array's name; otherwise 0. */
int shardtool_is_array(const shardtool_features *features, size_t i, shardtool_bytes *name);
/* Gets an array. If it is compressed, the error is NotDecoded. */
int shardtool_get_array(const shardtool_features *features, shardtool_bytes name, shardtool_array *array,
                        shardtool_error *error);

/* --- indexes --- */

typedef struct shardtool_shard shardtool_shard;

/* Opens the index of a shard, without the shard. */
int shardtool_index(shardtool_dataset *dataset, size_t split, size_t shard, shardtool_shard **index,
                    shardtool_error *error);
uint64_t shardtool_rows(const shardtool_shard *index);
uint64_t shardtool_first_record(const shardtool_shard *index); /* in the split */
size_t shardtool_column_count(const shardtool_shard *index);
shardtool_bytes shardtool_column_name(const shardtool_shard *index, size_t column);

typedef struct {
    int kind; /* SHARDTOOL_BYTES, _FLOAT or _INT64; numbers without sign are _INT64 */
    int is_null;
    int64_t integer;
    uint32_t bits; /* of a float */
    shardtool_bytes bytes;
} shardtool_cell_value;

/* Checks CRCs, padding, offsets and validity of a column. Otherwise this is done on first use. */
int shardtool_check_column(shardtool_dataset *dataset, shardtool_shard *index, size_t column, shardtool_error *error);
/* Gets the value of a column in a row. The column is checked on first use. */
int shardtool_cell(shardtool_dataset *dataset, shardtool_shard *index, size_t column, uint64_t row,
                   shardtool_cell_value *value, shardtool_error *error);
/* Finds the first record of a split with a key, in the indexes. Returns 1, or 0 if no record has the key. */
int shardtool_lookup(shardtool_dataset *dataset, size_t split, shardtool_bytes key, uint64_t *id,
                     shardtool_error *error);

/* --- verification --- */

/* Calls `report` with every finding and returns their number. `good` (may be NULL) is the number of records that are
 * delivered without error. Raw pixels and arrays are compared with their sizes; other images are not decoded. */
uint64_t shardtool_verify(const char *folder, void (*report)(void *user, const shardtool_error *finding), void *user,
                          uint64_t *good);

/* --- order --- */

uint64_t shardtool_derive_key(const char *domain, uint64_t seed, uint64_t epoch, uint64_t tweak);
/* Draw i of a key. `draw >> 11` times 2⁻⁵³ is a number in [0, 1). */
uint64_t shardtool_draw(uint64_t key, uint64_t i);
/* Scales a u64 to [0, n), for n up to 2³². */
uint64_t shardtool_scale(uint64_t word, uint64_t n);

typedef struct {
    uint64_t n, a, b, keys[6];
    uint16_t table[4096];
} shardtool_permutation;

/* Returns 0, or -1 unless n ≤ 2⁶³. For packing, the key is that of the domain "pack". */
int shardtool_permutation_init(shardtool_permutation *permutation, uint64_t n, uint64_t key);
/* x is below n. */
uint64_t shardtool_permute(const shardtool_permutation *permutation, uint64_t x);

enum { SHARDTOOL_SEQUENTIAL, SHARDTOOL_SHUFFLED, SHARDTOOL_INTERLEAVED };

typedef struct {
    int kind;
    uint64_t n, seed, epoch, run, window, inside_number;
    shardtool_permutation all, inside;
} shardtool_order;

/* Returns 0, or -1 unless n ≤ 2⁶³ and, for interleaved, run and window are in [1, 2³²). */
int shardtool_order_init(shardtool_order *order, int kind, uint64_t n, uint64_t seed, uint64_t epoch, uint64_t run,
                         uint64_t window);
/* Returns the source position at position q, below n; for a whole split, the record's number. */
uint64_t shardtool_order_place(shardtool_order *order, uint64_t q);

#endif

#include "schedule/cpu_schedule.h"

enum { LANES = O3_BLOCK_LANES, LINE_BYTES = 64, LONGEST_PIECE = 128, JOINED_PIECE = 28 };

static int64_t divide_up(int64_t a, int64_t b) { return (a + b - 1) / b; }
static int64_t least(int64_t a, int64_t b) { return a < b ? a : b; }

/* ---- Packed products ---- */

/* A tile's part of the packed operand is read again for each of its rows, from the first-level cache; the
 * panel of a task for each tile, from the second-level one, which leaves three quarters to the other
 * operands. Sums longer than this gain nothing: the results are read and written once for each piece of them.
 */
static int64_t choose_k_block(const o3_machine_t *machine, int64_t column_bytes, int64_t panel_bytes) {
  enum { LEAST = 32, MOST = 256, STEP = 16 };
  int64_t k = least(machine->l1_bytes / column_bytes, machine->l2_bytes / 4 / panel_bytes);
  k = least(k, MOST) / STEP * STEP;
  return k < LEAST ? LEAST : k;
}

/* All rows, unless that leaves threads without work: each block of rows packs its columns anew. */
static int64_t choose_row_block(const o3_machine_t *machine, const o3_schedule_product_t *p, int64_t panel,
                                int64_t tile_rows) {
  enum { LEAST = 64, UNKNOWN = 256, TASKS_A_CORE = 8 };
  int64_t wanted = (int64_t)TASKS_A_CORE * machine->cores, rows = p->rows;
  int64_t tasks = (p->around < 0 ? 1 : p->around) * divide_up(p->columns < 0 ? panel : p->columns, panel);
  if (rows < 0) return UNKNOWN;
  int64_t pieces = tasks >= wanted || tasks == 0 ? 1 : divide_up(wanted, tasks);
  int64_t block = divide_up(rows, pieces);
  return divide_up(block < LEAST ? LEAST : block, tile_rows) * tile_rows;
}

o3_schedule_packed_t o3_schedule_packed(const o3_machine_t *machine, const o3_schedule_product_t *product) {
  bool wide = machine->vector_registers >= 32;
  int64_t bytes = product->bits / 8, lanes = machine->vector_bytes / bytes;
  o3_schedule_packed_t s = {.lanes = lanes, .columns = 2 * lanes};
  s.rows = wide ? 8 : machine->vector_bytes >= 32 ? 6 : 4;
  s.panel = s.columns * (wide ? 4 : 8);
  s.k_block = choose_k_block(machine, s.columns * bytes, s.panel * bytes);
  s.row_block = choose_row_block(machine, product, s.panel, s.rows);
  return s;
}

/* ---- Products with few vectors ---- */

/* As many streams as the accumulators, or the factors of the rows, leave registers for. */
static int64_t choose_steps(const o3_machine_t *machine, const o3_schedule_vectors_t *p) {
  bool wide = machine->vector_registers >= 32;
  if (p->is_dots) return wide || p->few <= 2 ? 4 : 2;
  int64_t most = (wide ? 28 : 14) / (p->few + 1);
  return most >= 8 ? 8 : most >= 4 ? 4 : 2;
}

/* As few parts as give each core the same: a long row is a longer stream. Results that each row is added to
 * stay in the first-level cache. */
static int64_t choose_span(const o3_machine_t *machine, const o3_schedule_vectors_t *p, int64_t lanes) {
  enum { LEAST_DOTS = 16, MOST_DOTS = 512, LEAST_SUMS = 256, MOST_SUMS = 4096 };
  int64_t least_span = p->is_dots ? LEAST_DOTS : LEAST_SUMS, most = MOST_DOTS;
  if (!p->is_dots) most = least(machine->l1_bytes / 2 / (p->few * p->bits / 8), MOST_SUMS);
  most = most < least_span ? least_span : most / lanes * lanes;
  if (p->many < 0) return most;
  int64_t parts = divide_up(p->many, most), cores = p->around < machine->cores ? machine->cores : 1;
  int64_t span = parts ? divide_up(p->many, divide_up(parts, cores) * cores) : least_span;
  return divide_up(span < least_span ? least_span : span, lanes) * lanes;
}

o3_schedule_thin_t o3_schedule_thin(const o3_machine_t *machine, const o3_schedule_vectors_t *product) {
  int64_t lanes = machine->vector_bytes / (product->bits / 8);
  return (o3_schedule_thin_t){
      .lanes = lanes, .steps = choose_steps(machine, product), .span = choose_span(machine, product, lanes)};
}

/* ---- Attention ---- */

/* Each task packs all keys and values, so it should take many queries, unless cores were left without one. */
static int64_t choose_queries(const o3_machine_t *machine, int64_t around, int64_t queries) {
  enum { FEW = 64, MANY = 128, TASKS_A_CORE = 2 };
  if (queries < 0) return MANY;
  double tasks = (double)(around < 0 ? 1 : around) * (double)divide_up(queries, MANY);
  return queries <= FEW || tasks < (double)TASKS_A_CORE * machine->cores ? FEW : MANY;
}

/* Of a register tile and of a block of |count| columns. Two vectors are the rule; one or three where these
 * compute a quarter less, or less than that, of a block that is all there is. */
static void choose_columns(const o3_machine_t *machine, int64_t lanes, int64_t count, int64_t *columns,
                           int64_t *block) {
  enum { MOST_VECTORS = 3 };
  if (machine->vector_registers < 32 || count < 1 || count > *block) return;
  int64_t all = divide_up(count, *columns) * *columns;
  for (int64_t vectors = MOST_VECTORS; vectors >= 1; --vectors) {
    int64_t computed = divide_up(count, vectors * lanes) * vectors * lanes;
    if (4 * computed > 3 * all || computed > *block) continue;
    *columns = vectors * lanes;
    *block = all = computed;
  }
}

o3_schedule_attention_t o3_schedule_attention(const o3_machine_t *machine, const o3_schedule_heads_t *heads) {
  const o3_schedule_product_t product = {.bits = 32, .around = -1, .rows = -1, .columns = -1};
  o3_schedule_packed_t p = o3_schedule_packed(machine, &product);
  o3_schedule_attention_t s = {.lanes = p.lanes,
                               .rows = p.rows,
                               .columns = p.columns,
                               .value_columns = p.columns,
                               .k_block = p.k_block,
                               .keys = p.panel,
                               .values = p.panel,
                               .queries = choose_queries(machine, heads->around, heads->queries)};
  choose_columns(machine, p.lanes, heads->keys, &s.columns, &s.keys);
  choose_columns(machine, p.lanes, heads->width, &s.value_columns, &s.values);
  return s;
}

/* ---- Blocks of lanes ---- */

/* Of one turn of the innermost sum: neighbouring pixels. */
static bool shares_inputs(const o3_schedule_blocks_t *p, const o3_schedule_tiles_t *s) {
  return p->pixel_turns > 0 && p->pixel_turns < s->unroll;
}

/* A core that starts two multiply-adds in a cycle loads two vectors in it at most, which is what a tile of
 * one block takes: an input for each. Several blocks take one input: two of them, or three where that leaves
 * none over. Sums, the blocks' weights and an input fill the registers. */
static void choose_paired_tile(const o3_schedule_blocks_t *p, o3_schedule_tiles_t *s) {
  enum { TWO_BLOCKS = 14, THREE_BLOCKS = 9 };
  s->blocks = p->blocks % 2 && p->blocks % 3 == 0 ? 3 : 2;
  s->pixels = s->blocks == 2 ? TWO_BLOCKS : THREE_BLOCKS;
}

/* With 32 registers. Runs take many pixels of one block, whose operands come straight from memory: the more
 * there are, the slower weights may come. A run of few pixels takes two blocks, as any run does where loads
 * would bound it. Rows of a matrix lie far apart and may share a set of the cache: few of them, and three
 * blocks. Pixels that share their inputs leave registers for the weights of all turns and one input. */
static void choose_wide_tile(const o3_machine_t *machine, const o3_schedule_blocks_t *p,
                             o3_schedule_tiles_t *s) {
  enum { ALL = 32, REGISTERS = 28, TWO_BLOCKS = 13, THREE_BLOCKS = 8 };
  bool is_halves = p->is_matrix && p->run > REGISTERS && p->run < 2 * REGISTERS;
  bool is_short = p->run >= 0 && (p->run < TWO_BLOCKS || is_halves);
  bool shares = shares_inputs(p, s);
  s->pixels = shares ? least(REGISTERS, ALL - 1 - s->unroll) : REGISTERS;
  if (p->is_row || shares) return;
  if (p->is_matrix && p->blocks >= 3) {
    s->blocks = 3;
    s->pixels = THREE_BLOCKS;
  } else if (is_short && p->blocks >= 2) {
    s->blocks = 2;
    s->pixels = TWO_BLOCKS;
  } else if (machine->fma_ports > 1 && p->blocks >= 2 && !p->is_joined) {
    choose_paired_tile(p, s);
  }
}

/* Registers are for a sum of each pixel, the weights of all turns that pixels share inputs in, and an input
 * or two. */
static int64_t lanewise_pixels(const o3_machine_t *machine, const o3_schedule_blocks_t *p,
                               const o3_schedule_tiles_t *s) {
  enum { MOST = 14, LEAST = 4, INPUTS = 2 };
  int64_t left = machine->vector_registers - INPUTS - (shares_inputs(p, s) ? s->unroll : 1);
  return left < LEAST ? LEAST : least(left, MOST);
}

/* Each block has entries of its own: one at a time, and as many pixels as there are registers, which hold
 * their inputs, too, while N:M takes from them. All blocks take a piece of the input in turn, while it is in
 * the cache, when the entries are there, too. */
static void choose_sparse_tile(const o3_machine_t *machine, const o3_schedule_blocks_t *p,
                               o3_schedule_tiles_t *s) {
  bool wide = machine->vector_registers >= 32;
  s->lanes = least(s->lanes, p->entry_lanes);
  s->pixels = (!wide ? 12 : p->is_matrix ? 8 : 28) / (p->entry_lanes / s->lanes);
  if (p->is_groups) s->pixels = wide ? 12 : 4;
  s->piece_first = p->weight_bytes <= machine->l2_bytes / 4;
}

static int64_t choose_unroll(const o3_schedule_blocks_t *p) {
  if (p->inside) return p->steps;
  if (p->is_lanewise) return 1;
  if (p->entry_lanes) return least(p->steps, 4);
  if (p->last_steps % 4 == 1 || p->last_steps % 4 == 2) return p->steps % 2 == 0 ? 2 : 1;
  if (p->steps == 5 || p->steps == 7) return p->steps;
  return p->steps % 4 == 0 ? 4 : p->steps % 3 == 0 ? 3 : p->steps % 2 == 0 ? 2 : 1;
}

/* A run that fits one piece is one. */
static int64_t choose_piece(const o3_schedule_blocks_t *p, int64_t pixels) {
  if (p->inside && p->run >= 0) return p->run > 1 ? p->run : 1; /* tiles are made for their places */
  return p->run >= 0 && p->run <= LONGEST_PIECE ? LONGEST_PIECE : LONGEST_PIECE / pixels * pixels;
}

/* A run that cores share is as many tiles for each, if that takes no small ones. */
static void share_run(const o3_machine_t *machine, const o3_schedule_blocks_t *p, o3_schedule_tiles_t *s) {
  int64_t cores = machine->cores, tiles = divide_up(p->run, s->pixels), each = divide_up(tiles, cores);
  int64_t pixels = divide_up(p->run, each * cores);
  if (tiles < cores || pixels * 2 < s->pixels) return;
  s->pixels = pixels;
  s->piece = least(each, LONGEST_PIECE / pixels) * pixels;
}

/* Rows, or tiles, of a strip at most: as many as a core gets, of images that each block reads again only what
 * a cache holds meanwhile. */
static int64_t longest_strip(const o3_machine_t *machine, const o3_schedule_blocks_t *p,
                             const o3_schedule_tiles_t *s, int64_t count) {
  int64_t most = divide_up(count, machine->cores);
  if (p->is_lanewise || p->reads <= s->blocks) return most;
  return p->image_bytes > 0 ? least(most, machine->l2_bytes / 2 * count / p->image_bytes) : 1;
}

/* Of |count| rows or tiles those that a task computes. The last strip should hardly be smaller than others.
 */
static int64_t strip_length(const o3_machine_t *machine, const o3_schedule_blocks_t *p,
                            const o3_schedule_tiles_t *s, int64_t count) {
  enum { MAX_WASTE = 16 };
  int64_t size = longest_strip(machine, p, s, count);
  while (size > 1 && (divide_up(count, size) * size - count) * MAX_WASTE > count) --size;
  return size < 1 ? 1 : size;
}

/* A thread computes the same part of an image in each layer, unless that made all cores read weights from
 * memory. */
static void choose_strips(const o3_machine_t *machine, const o3_schedule_blocks_t *p,
                          o3_schedule_tiles_t *s) {
  if (!p->entry_lanes) s->piece_first = !p->is_matrix && p->weight_bytes <= machine->l2_bytes;
  bool shares = s->piece_first && !p->entry_lanes && !p->is_row;
  if (shares && p->run > 0 && !p->rows && !p->inside) share_run(machine, p, s);
  s->strip_rows = 1;
  s->strip_pixels = s->piece;
  if (p->chain_rows) s->strip_rows = p->chain_rows;
  if (!shares || p->chain_rows) return;
  if (p->rows)
    s->strip_rows = p->rows < 0 ? 0 : strip_length(machine, p, s, p->rows);
  else if (p->run > 0 && !p->inside)
    s->strip_pixels = strip_length(machine, p, s, divide_up(p->run, s->pixels)) * s->pixels;
}

/* A tile reads 28 pixels of each block of channels, which lie far apart. The processor's own prefetching
 * follows a few such streams; what it misses matters where few blocks of results share what is read, and the
 * image comes from beyond the core's cache. */
static bool reads_ahead(const o3_machine_t *machine, const o3_schedule_blocks_t *p) {
  enum { FEW_STREAMS = 3, FEW_READS = 3 };
  bool is_far = p->image_bytes < 0 || p->image_bytes > machine->l2_bytes;
  return p->streams > FEW_STREAMS && p->reads <= FEW_READS && is_far && !p->entry_lanes && !p->is_row;
}

o3_schedule_tiles_t o3_schedule_tiles(const o3_machine_t *machine, const o3_schedule_blocks_t *product) {
  bool wide = machine->vector_registers >= 32;
  int64_t lanes = least(machine->vector_bytes / (int64_t)sizeof(float), LANES);
  o3_schedule_tiles_t s = {.lanes = lanes, .blocks = 1, .unroll = choose_unroll(product)};
  bool holds_weights = shares_inputs(product, &s) && s.unroll <= 3; /* of all turns */
  s.pixels = wide ? 14 : lanes == LANES / 2 ? holds_weights ? 4 : 6 : 2;
  if (product->is_lanewise) s.pixels = lanewise_pixels(machine, product, &s);
  if (product->entry_lanes)
    choose_sparse_tile(machine, product, &s);
  else if (wide && !product->is_lanewise)
    choose_wide_tile(machine, product, &s);
  s.piece = choose_piece(product, s.pixels);
  choose_strips(machine, product, &s);
  if (product->is_joined && s.blocks == 1 && product->run > LONGEST_PIECE)
    s.piece = JOINED_PIECE / s.pixels * s.pixels;
  s.ahead = reads_ahead(machine, product);
  return s;
}

/* ---- Chains ---- */

/* A core computes no slower from the next level of caches than from its own while its share of the image is
 * no larger than that; then a chain is as fast, and leaves the next level to others. Each part computes the
 * rows that its first window shares with the part before it. */
const char *o3_schedule_chain(const o3_machine_t *machine, const o3_schedule_chain_t *c, int64_t *rows,
                              int64_t *parts) {
  enum { LEAST_ROWS = 8 };
  int64_t shared = c->taps - c->stride, fit = machine->l2_bytes / 2 / c->row_bytes;
  int64_t part = divide_up(c->rows, machine->cores);
  *parts = divide_up(c->rows, part);
  if (c->image_bytes / machine->cores <= machine->l2_bytes)
    return "its input comes from a cache as fast as it is used";
  if (part < LEAST_ROWS * shared) return "cores would compute too many rows twice";
  *rows = (fit - shared) / c->stride;
  if (*rows < 1) return "the rows of its window are more than the cache holds";
  *rows = divide_up(part, divide_up(part, least(*rows, part)));
  return NULL;
}

/* ---- Winograd ---- */

/* Chunks of |most| tiles; of a few, as many for each core. */
static int64_t chunk_count(const o3_machine_t *machine, int64_t tiles, int64_t most) {
  enum { FEW = 4 };
  int64_t count = divide_up(tiles, most), cores = machine->cores;
  return count < cores || count > FEW * cores ? count : divide_up(count, cores) * cores;
}

/* Of register tiles of half as many registers those that compute fewest tiles that there are not; each costs
 * about half a pixel more. */
static int64_t narrow_pixels(int64_t tiles) {
  enum { MOST = 6, LEAST = 4 };
  int64_t best = MOST;
  for (int64_t pixels = MOST - 1; tiles > 0 && pixels >= LEAST; --pixels) {
    int64_t cost = divide_up(tiles, pixels) * (2 * pixels + 1);
    if (cost < divide_up(tiles, best) * (2 * best + 1)) best = pixels;
  }
  return best;
}

/* Two blocks where loads would bound a tile of one (choose_paired_tile), unless its pixels were all tiles,
 * half of which would then take weights from beyond the cache once more. */
static int64_t chunk_blocks(const o3_machine_t *machine, int64_t tiles, int64_t outputs, bool is_far) {
  enum { WIDE = 28 };
  bool is_bound = machine->vector_registers >= 32 && machine->fma_ports > 1 && tiles > 0;
  bool is_one = is_far && tiles > WIDE / 2 && tiles <= WIDE;
  return is_bound && !is_one && outputs % 2 == 0 ? 2 : 1;
}

/* With 32 registers a full chunk is one register tile; one that is not full, where the number of tiles is
 * known only at run time, several small ones. */
static void choose_chunk(const o3_machine_t *machine, int64_t tiles, o3_schedule_winograd_t *s) {
  enum { WIDE = 28, PART = 8, NARROW = 24, SMALL_PIXELS = 2 };
  bool wide = machine->vector_registers >= 32, half = machine->vector_bytes * 2 == LINE_BYTES;
  if (wide && tiles > 0) {
    s->chunk = divide_up(tiles, chunk_count(machine, tiles, WIDE / s->blocks));
    s->pixels = s->whole = s->chunk;
    return;
  }
  s->pixels = wide ? PART : half ? narrow_pixels(tiles) : SMALL_PIXELS;
  s->chunk = divide_up(NARROW, s->pixels) * s->pixels;
  s->whole = wide ? s->chunk : s->pixels;
  if (tiles > 0 && tiles < s->chunk) s->chunk = divide_up(tiles, s->pixels) * s->pixels;
}

/* Several register tiles take the same weights in turn: as many as stay in the first-level cache beside what
 * they are multiplied by. */
static int64_t choose_depth(const o3_machine_t *machine, int64_t blocks, const o3_schedule_winograd_t *s) {
  int64_t most = machine->l1_bytes / 2 / (LANES * LANES * (int64_t)sizeof(float));
  if (s->whole == s->chunk || blocks < 1 || most < 1) return blocks < 1 ? 1 : blocks;
  return divide_up(blocks, divide_up(blocks, most));
}

/* How many strips the threads share, if all weights stay in a core's cache and each core gets a chunk. */
static int64_t strip_count(const o3_machine_t *machine, int64_t tiles, int64_t chunk, int64_t weight_bytes) {
  enum { STRIPS_PER_CORE = 2 };
  int64_t most = (int64_t)STRIPS_PER_CORE * machine->cores,
          chunks = tiles < 0 ? most : divide_up(tiles, chunk);
  return weight_bytes > machine->l2_bytes || chunks < machine->cores ? 1 : least(chunks, most);
}

/* The panel's transformed input stays in the second-level cache; panels are of about the same size. Weights
 * that do not stay there come once for a panel where its chunks, of few tiles each, take them in turn. */
o3_schedule_winograd_t o3_schedule_winograd(const o3_machine_t *machine, int64_t tiles, int64_t points,
                                            int64_t blocks, int64_t outputs) {
  o3_schedule_winograd_t s = {.lanes = least(machine->vector_bytes / (int64_t)sizeof(float), LANES)};
  int64_t block_bytes = points * blocks * LANES * LANES * (int64_t)sizeof(float);
  bool is_far = outputs * block_bytes > machine->l2_bytes;
  s.blocks = chunk_blocks(machine, tiles, outputs, is_far);
  choose_chunk(machine, tiles, &s);
  s.weights_first = s.blocks > 1 && is_far;
  int64_t room = machine->l2_bytes / (s.weights_first ? 2 : 1);
  int64_t chunks = room / (points * blocks * s.chunk * LANES * (int64_t)sizeof(float));
  if (chunks < 1) chunks = 1;
  if (tiles > 0) {
    int64_t all = divide_up(tiles, s.chunk);
    chunks = divide_up(all, divide_up(all, chunks));
  }
  s.strips = strip_count(machine, tiles, s.chunk, outputs * block_bytes);
  s.panel = s.strips > 1 ? s.chunk : chunks * s.chunk;
  s.depth = choose_depth(machine, blocks, &s);
  return s;
}

/* ---- Compressed rows ---- */

/* A panel is cut into tiles of the same size. */
static int64_t panel_vectors(int64_t vectors, int64_t most) {
  return divide_up(vectors, divide_up(vectors, most));
}

/* What is left of a panel, or of an image whose size the run knows, takes smaller tiles. */
o3_schedule_csr_t o3_schedule_csr(const o3_machine_t *machine, int64_t panel, int64_t rows) {
  enum { REST_OF_PANEL = 4, REST_OF_IMAGE = 8 };
  o3_schedule_csr_t s = {.lanes = machine->vector_bytes / (int64_t)sizeof(float),
                         .vectors = machine->vector_registers >= 32 ? 14 : 12};
  if (!panel) {
    s.rest = rows < 0 ? REST_OF_IMAGE : 0;
    return s;
  }
  int64_t vectors = divide_up(panel, s.lanes);
  s.vectors = panel_vectors(vectors, s.vectors);
  if (s.vectors > 1 && (rows < 0 || rows % panel || vectors % s.vectors))
    for (s.rest = REST_OF_PANEL; s.rest >= s.vectors;) s.rest /= 2;
  return s;
}

/* ---- Loops ---- */

/* Of the operands of a task, a quarter of the first-level cache each; where sums go around them, a sixteenth,
 * as the window's lines are there, too. A run that takes several tasks takes as many for each core. */
static int64_t choose_block(const o3_machine_t *machine, const o3_schedule_nest_t *nest) {
  enum { OPERANDS = 4, WINDOW = 16, LINE = 64, MOST = 1 << 20 };
  int64_t bytes = nest->bits < 8 ? 1 : nest->bits / 8, cores = machine->cores;
  int64_t most = machine->l1_bytes / (nest->is_reduced ? WINDOW : OPERANDS) / bytes / LINE * LINE;
  most = most < LINE ? LINE : least(most, MOST);
  if (nest->inner < 0) return most;
  int64_t parts = divide_up(nest->inner, most);
  if (parts <= 1) return 0;
  if (nest->around < 0 || nest->around >= cores) return most;
  return divide_up(divide_up(nest->inner, divide_up(parts, cores) * cores), LINE) * LINE;
}

/* A square that is read and written fits a quarter of the first-level cache. */
static int64_t choose_square(const o3_machine_t *machine, const o3_schedule_nest_t *nest) {
  enum { LEAST = 8, OPERANDS = 2, SHARE = 4 };
  int64_t bytes = nest->bits < 8 ? 1 : nest->bits / 8, side = LEAST;
  while (OPERANDS * 4 * side * side * bytes <= machine->l1_bytes / SHARE) side *= 2;
  return side;
}

/* Of the other side of the square a line is enough: as many lines are read at a time, one for each turn.
 * Where all of them fall into one set of the first-level cache, no more than it holds. */
static int64_t choose_lines(const o3_schedule_nest_t *nest, int64_t square) {
  enum { LINE = 64, WAYS = 8, WAY_BYTES = 4096 }; /* x86-64: at least 8 ways, of a page each */
  int64_t bytes = nest->bits < 8 ? 1 : nest->bits / 8;
  bool is_one_set = nest->jump && nest->jump % WAY_BYTES == 0;
  return least(square, is_one_set ? WAYS : LINE / bytes);
}

void o3_schedule_loops(const o3_machine_t *machine, const o3_schedule_nest_t *nest,
                       o3_schedule_loops_t *schedule) {
  bool has_across = schedule->across >= 0;
  schedule->across_block = has_across ? choose_square(machine, nest) : 0;
  schedule->block = has_across                            ? choose_lines(nest, schedule->across_block)
                    : nest->is_sum || schedule->inner < 0 ? 0
                                                          : choose_block(machine, nest);
}

/* ---- Rows ---- */

/* Operations worth giving to a thread that spins, 2 us of them or more: waking it takes 0.2, but its caches
 * have the same part of what the kernel before has written, and are to have that of the next. */
o3_schedule_rows_t o3_schedule_rows(int64_t work) {
  enum { LEAST_WORK = 8000 };
  return (o3_schedule_rows_t){.rows = divide_up(LEAST_WORK, work < 1 ? 1 : work), .ahead_level = 1};
}

/* What a core's cache holds of the operands is there already. The first level is to hold a row, its result
 * and the next row. */
void o3_schedule_rows_ahead(const o3_machine_t *machine, int64_t row_bytes, int64_t bytes,
                            o3_schedule_rows_t *schedule) {
  enum { OPERANDS = 2, BLOCK_BYTES = 1024 };
  bool is_near = bytes >= 0 && bytes <= machine->l2_bytes / OPERANDS;
  if (is_near || row_bytes < BLOCK_BYTES) return;
  schedule->ahead = BLOCK_BYTES / (int64_t)sizeof(float);
  schedule->ahead_level = row_bytes <= machine->l1_bytes / (OPERANDS + 1) ? 1 : 2;
}

/* ---- Borders ---- */

o3_schedule_border_t o3_schedule_border(const o3_machine_t *machine, int64_t width, int bits) {
  int64_t lanes = least(machine->vector_bytes * 8 / (bits < 8 ? 8 : bits), LANES);
  while (lanes > 1 && width % lanes) lanes /= 2;
  return (o3_schedule_border_t){.lanes = lanes};
}

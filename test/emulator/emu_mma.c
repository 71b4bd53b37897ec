// Operations of the tensor cores of sm_70 to sm_89: which lane has which element is as the PTX manual says,
// in its figures of fragments. Sums are exact but for one rounding; the card's are near that.
#include <stdlib.h>
#include <string.h>

#include "emu_element.h"
#include "emu_ops.h"
#include "hopper_ops.h"

// ---- m16n8k* ----

enum { ROWS = 16, COLUMNS = 8, MAX_DEPTH = 16, SUMS = 4 };

// That of "mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32".
static emu_element_t element_of(const char *instruction) {
  static const char kBefore[] = ".col.f32.";
  const char *type = strstr(instruction, kBefore) + strlen(kBefore);
  emu_element_t element = emu_element_named(type, (int)strcspn(type, "."));
  if (element == EMU_ELEMENTS || emu_element_bytes(element) < 2) emu_fail("%s is not known", instruction);
  return element;
}

static float element_at(emu_element_t element, const emu_word_t *word, int part) {
  return emu_element_value(element, (const uint8_t *)word + part * emu_element_bytes(element));
}

// Register |i| of lane |lane| has |parts| elements of A from this row and column on; of B likewise, with the
// column of B as row.
static void place_a(int lane, int i, int parts, int *row, int *column) {
  *row = lane / 4 + 8 * (i % 2);
  *column = parts * (lane % 4) + 4 * parts * (i / 2);
}

void emu_mma_16(emu_warp_t *warp, uint32_t lanes) {
  emu_check_whole(warp, lanes);
  const char *name = warp->threads[0].site->name;
  emu_element_t element = element_of(name);
  int depth = atoi(strstr(name, "n8k") + strlen("n8k")), parts = 4 / emu_element_bytes(element);
  int a_words = ROWS * depth / EMU_WARP / parts, b_words = COLUMNS * depth / EMU_WARP / parts;
  float a[ROWS][MAX_DEPTH], b[COLUMNS][MAX_DEPTH];
  EMU_EACH(thread, warp, lanes) {
    for (int i = 0; i < a_words; ++i) {
      int row, column;
      place_a(thread->lane, i, parts, &row, &column);
      for (int p = 0; p < parts; ++p) a[row][column + p] = element_at(element, &thread->operands[i], p);
    }
    for (int i = 0; i < b_words; ++i)
      for (int p = 0; p < parts; ++p)
        b[thread->lane / 4][parts * (thread->lane % 4 + 4 * i) + p] =
            element_at(element, &thread->operands[a_words + i], p);
  }
  EMU_EACH(thread, warp, lanes) {
    for (int i = 0; i < SUMS; ++i) {
      int row = thread->lane / 4 + 8 * (i / 2), column = 2 * (thread->lane % 4) + i % 2;
      double sum = thread->operands[a_words + b_words + i].f32;
      for (int k = 0; k < depth; ++k) sum += (double)a[row][k] * (double)b[column][k];
      thread->results[i].f32 = (float)sum;
    }
  }
}

// ---- m8n8k4: four products of 8 x 8, by lanes 4q to 4q + 3 and the same ones 16 further ----

enum { SIDE = 8, DEPTH = 4, WORDS = 2, SUMS_OF_8 = 8 };

static float half_at(const emu_thread_t *thread, int first, int k) {
  return element_at(EMU_F16, &thread->operands[first + k / 2], k % 2);
}

static void multiply_quarter(emu_warp_t *warp, uint32_t lanes, bool b_by_rows) {
  float a[SIDE][DEPTH], b[SIDE][DEPTH];
  EMU_EACH(thread, warp, lanes) {
    int line = thread->lane % 4, high = 4 * (thread->lane / 16);
    for (int k = 0; k < DEPTH; ++k) {
      a[line + high][k] = half_at(thread, 0, k);
      if (b_by_rows)
        b[k + high][line] = half_at(thread, WORDS, k);
      else
        b[line + high][k] = half_at(thread, WORDS, k);
    }
  }
  EMU_EACH(thread, warp, lanes) {
    for (int i = 0; i < SUMS_OF_8; ++i) {
      int row = (thread->lane & 1) + (i & 2) + 4 * (thread->lane / 16);
      int column = (i & 4) + (thread->lane & 2) + (i & 1);
      double sum = thread->operands[2 * WORDS + i].f32;
      for (int k = 0; k < DEPTH; ++k) sum += (double)a[row][k] * (double)b[column][k];
      thread->results[i].f32 = (float)sum;
    }
  }
}

void emu_mma_884(emu_warp_t *warp, uint32_t lanes) {
  emu_check_whole(warp, lanes);
  bool b_by_rows = strstr(warp->threads[0].site->name, ".row.row.") != NULL;
  for (int quarter = 0; quarter < 4; ++quarter)
    multiply_quarter(warp, UINT32_C(0x000f000f) << 4 * quarter, b_by_rows);
}

// ---- 8 x 8 matrices of 16 bits in shared memory ----

enum { MATRIX_ROW = 16 };  // bytes

// Where row |row| of matrix |matrix| is: lane 8 * matrix + row has it.
static char *matrix_row(const emu_warp_t *warp, int matrix, int row) {
  char *at = warp->threads[8 * matrix + row].operands[0].pointer;
  if ((uintptr_t)at % MATRIX_ROW)
    emu_fail("a row of a matrix at %p: not aligned to %d", (void *)at, MATRIX_ROW);
  return at;
}

static int matrices_of(const emu_warp_t *warp) {
  const char *name = warp->threads[0].site->name;
  return atoi(strstr(name, ".m8n8.x") + strlen(".m8n8.x"));
}

static bool is_transposed(const emu_warp_t *warp) {
  return strstr(warp->threads[0].site->name, ".trans") != NULL;
}

// The element of |lane| in half |part| of its word.
static char *matrix_element(const emu_warp_t *warp, int matrix, int lane, int part, bool transposed) {
  int row = lane / 4, column = 2 * (lane % 4) + part;
  return transposed ? matrix_row(warp, matrix, column) + 2 * row : matrix_row(warp, matrix, row) + 2 * column;
}

void emu_load_matrices(emu_warp_t *warp, uint32_t lanes) {
  emu_check_whole(warp, lanes);
  bool transposed = is_transposed(warp);
  EMU_EACH(thread, warp, lanes) {
    for (int matrix = 0; matrix < matrices_of(warp); ++matrix) {
      uint16_t parts[2];
      for (int i = 0; i < 2; ++i)
        memcpy(&parts[i], matrix_element(warp, matrix, thread->lane, i, transposed), sizeof parts[i]);
      thread->results[matrix].u32 = parts[0] | (uint32_t)parts[1] << 16;
    }
  }
}

void emu_store_matrices(emu_warp_t *warp, uint32_t lanes) {
  emu_check_whole(warp, lanes);
  bool transposed = is_transposed(warp);
  EMU_EACH(thread, warp, lanes) {
    for (int matrix = 0; matrix < matrices_of(warp); ++matrix) {
      for (int i = 0; i < 2; ++i) {
        uint16_t part = (uint16_t)(thread->operands[1 + matrix].u32 >> 16 * i);
        memcpy(matrix_element(warp, matrix, thread->lane, i, transposed), &part, sizeof part);
      }
    }
  }
  for (int matrix = 0; matrix < matrices_of(warp); ++matrix)
    for (int row = 0; row < 8; ++row)
      emu_hopper_wrote(matrix_row(warp, matrix, row), warp->threads[8 * matrix + row].number);
}

// main.cc in C.
#include <tepal/c_api.h>

#include <stdio.h>

int main(void) {
  uint64_t keys[1000];
  for (uint64_t i = 0; i < 1000; ++i) keys[i] = i * i;
  const tepal_column column = tepal_u64_column(keys, 1000);
  tepal_geometry geometry = TEPAL_GEOMETRY_INIT;
  tepal_filter* filter = NULL;
  size_t num_matches = 0;
  if (tepal_geometry_for(TEPAL_LAYOUT_SPLIT256, 1000, 12, &geometry) != TEPAL_OK ||
      tepal_filter_create(&geometry, NULL, &filter) != TEPAL_OK ||
      tepal_filter_insert(filter, &column) != TEPAL_OK ||
      tepal_filter_count(filter, &column, &num_matches) != TEPAL_OK) {
    fprintf(stderr, "consumer: %s\n", tepal_last_error_message());
  }
  tepal_filter_destroy(filter);
  return num_matches == 1000 ? 0 : 1;
}

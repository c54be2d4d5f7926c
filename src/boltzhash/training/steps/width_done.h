/* What each_width.h and tile.h have defined for a width, forgotten for the next. */

#undef EACH_NUMBER_OF_ROWS
#undef MORE_ROWS
#undef INLINE
#undef Vector
#undef WIDE
#undef ROWS
#undef LANES
#undef CPU
#undef NAME

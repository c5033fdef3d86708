// Everything an engine needs.
#ifndef TEPAL_TEPAL_H_
#define TEPAL_TEPAL_H_

#include "tepal/columns.h"
#include "tepal/container.h"
#include "tepal/export.h"
#include "tepal/filter.h"
#include "tepal/fpr.h"
#include "tepal/geometry.h"
#include "tepal/hash.h"
#include "tepal/memory.h"
#include "tepal/parallel_builder.h"
#include "tepal/parquet.h"
#include "tepal/planner.h"
#include "tepal/profile.h"
#include "tepal/sets.h"
#include "tepal/status.h"
#include "tepal/targets.h"
#include "tepal/version.h"

#endif  // TEPAL_TEPAL_H_

// libpq, with C functions for macros that Swift does not import.
#pragma once
#include <libpq-fe.h>

static inline const char *mss_pg_result_sqlstate(const PGresult *result) {
  return PQresultErrorField(result, PG_DIAG_SQLSTATE);
}

static inline const char *mss_pg_result_severity(const PGresult *result) {
  return PQresultErrorField(result, PG_DIAG_SEVERITY_NONLOCALIZED);
}

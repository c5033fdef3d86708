// Writes Parquet files with Bloom filters, by DuckDB and by hyparquet-writer, and what DuckDB says
// about them: where the filters lie, which values are in each row group, and which values DuckDB's
// parquet_bloom_probe excludes. tests/parquet_interop.cc must say the same.
//
//   node answers.mjs > answers.txt          files go to the current directory
//
// Lines of answers.txt; values are plain encodings in hexadecimal, "-" for the empty one:
//
//   filter FILE OFFSET LENGTH PHYSICAL_TYPE     the lines below belong to it
//   value HEX                                   is in the row group
//   probe HEX MAYBE                             DuckDB: 0 excluded, 1 not

import { writeFileSync } from 'node:fs'
import { DuckDBInstance } from '@duckdb/node-api'
import { parquetWriteBuffer } from 'hyparquet-writer'

const ROWS = 5000
const ROW_GROUP_ROWS = 2048 // DuckDB's smallest
const PRESENT_PROBES = 20 // per column, spread over the row groups
const ABSENT_PROBES = 50

// ---- Plain encodings

function bytesOf(length, set) {
  const view = new DataView(new ArrayBuffer(length))
  set(view)
  return Buffer.from(view.buffer)
}
const int32 = (value) => bytesOf(4, (view) => view.setInt32(0, Number(value), true))
const int64 = (value) => bytesOf(8, (view) => view.setBigInt64(0, BigInt(value), true))
const float = (value) => bytesOf(4, (view) => view.setFloat32(0, value, true))
const double = (value) => bytesOf(8, (view) => view.setFloat64(0, value, true))
const string = (value) => Buffer.from(value, 'utf8')
const blob = (value) => Buffer.from(value.bytes)
const uuid = (value) => Buffer.from(value.toString().replaceAll('-', ''), 'hex')

const hex = (bytes) => bytes.toString('hex') || '-'

// ---- Columns: the value of row i in SQL, and how its plain encoding is made from what DuckDB gives.
// Columns that are not probed are compared byte by byte only: DuckDB 1.5.6 excludes no UUID at all,
// and for decimals it probes with another hash than it has written.

const DUCKDB_COLUMNS = {
  i32: { sql: (i) => `(${i} * 7919 - 1000000)::INTEGER`, encode: int32 },
  nullable: { sql: (i) => `CASE WHEN ${i} % 3 = 0 THEN NULL ELSE ${i}::INTEGER END`, encode: int32 },
  u16: { sql: (i) => `(${i} * 3)::USMALLINT`, encode: int32 },
  u32: { sql: (i) => `(4294967295 - ${i} * 11)::UINTEGER`, encode: (v) => int32(v | 0) },
  day: { sql: (i) => `DATE '1970-01-01' + (${i} - 100)::INTEGER`, encode: (v) => int32(v.days) },
  dec9: { sql: (i) => `(${i}::DECIMAL(9, 2) - 7)::DECIMAL(9, 2)`, encode: (v) => int32(v.value), probed: false },
  i64: { sql: (i) => `(${i} * 1000000007 - 3000000000000)::BIGINT`, encode: int64 },
  u64: { sql: (i) => `(18446744073709551615 - ${i}::UBIGINT * 3000000000000000)::UBIGINT`, encode: (v) => int64(BigInt.asIntN(64, v)) },
  dec18: { sql: (i) => `(${i}::DECIMAL(18, 2) * 1000000)::DECIMAL(18, 2)`, encode: (v) => int64(v.value), probed: false },
  moment: { sql: (i) => `TIMESTAMP '2020-02-20 20:20:20' + to_seconds(${i})`, encode: (v) => int64(v.micros) },
  f32: { sql: (i) => `(${i}::FLOAT / 3 - 100)::FLOAT`, encode: float },
  f64: { sql: (i) => `(${i}::DOUBLE / 7 - 100)::DOUBLE`, encode: double },
  // Zeros of both signs and NaN, in different row groups; the rest are numbers.
  zeros: {
    sql: (i) => `CASE ${i} WHEN 7 THEN 0.0::DOUBLE WHEN 2050 THEN '-0.0'::DOUBLE WHEN 4100 THEN 'NaN'::DOUBLE ` +
      `WHEN ${ROWS} THEN 0.0::DOUBLE WHEN ${ROWS + 1} THEN '-0.0'::DOUBLE WHEN ${ROWS + 2} THEN 'NaN'::DOUBLE ` +
      `ELSE (1 + ${i} % 500)::DOUBLE END`,
    encode: double,
  },
  text: { sql: (i) => `repeat('v', ${i} % 45) || ${i}`, encode: string },
  bytes: { sql: (i) => `encode('b' || ${i})`, encode: blob },
  uuid: { sql: (i) => `md5(${i}::VARCHAR)::UUID`, encode: uuid, probed: false },
}

// hyparquet-writer takes numbers from JavaScript.
const HYPARQUET_COLUMNS = {
  i32: { type: 'INT32', sqlType: 'INTEGER', js: (i) => i * 7919 - 1000000, encode: int32 },
  i64: { type: 'INT64', sqlType: 'BIGINT', js: (i) => BigInt(i) * 1000000007n, encode: int64 },
  f32: { type: 'FLOAT', sqlType: 'FLOAT', js: (i) => Math.fround(i / 3), encode: float },
  f64: { type: 'DOUBLE', sqlType: 'DOUBLE', js: (i) => i / 7, encode: double },
  text: { type: 'STRING', sqlType: 'VARCHAR', js: (i) => 'v'.repeat(i % 45) + i, encode: string },
}

// ---- DuckDB

const connection = await (await DuckDBInstance.create(':memory:', { threads: '1' })).connect()
const query = async (sql) => (await connection.runAndReadAll(sql)).getRowObjects()

const lines = []

// Rows that are in the file, and rows that are not.
function rowsToProbe() {
  const rows = []
  for (let k = 0; k < PRESENT_PROBES; ++k) rows.push(Math.floor((k * ROWS) / PRESENT_PROBES))
  for (let k = 0; k < ABSENT_PROBES; ++k) rows.push(ROWS + k)
  return rows
}

// `literals` is a list of {sql, bytes}.
async function describeFilters(file, column, values, encode, literals) {
  const filters = await query(
    `SELECT row_group_id, type, num_values, bloom_filter_offset AS offset, bloom_filter_length AS length
     FROM parquet_metadata('${file}') WHERE path_in_schema = '${column}' ORDER BY row_group_id`)
  if (filters.length < 2) throw new Error(`${file}: ${column} has ${filters.length} row groups`)
  const probes = []
  for (const { sql, bytes } of literals) {
    const answers = await query(
      `SELECT bloom_filter_excludes AS excludes FROM parquet_bloom_probe('${file}', '${column}', ${sql})
       ORDER BY row_group_id`)
    probes.push({ bytes, maybe: answers.map(({ excludes }) => (excludes ? 0 : 1)) })
  }
  let begin = 0
  filters.forEach(({ type, num_values, offset, length }, group) => {
    if (offset === null) throw new Error(`${file}: ${column} has no Bloom filter`)
    lines.push(`filter ${file} ${offset} ${length} ${type}`)
    const end = begin + Number(num_values)
    for (const value of values.slice(begin, end)) {
      if (value !== null) lines.push(`value ${hex(encode(value))}`)
    }
    for (const { bytes, maybe } of probes) lines.push(`probe ${hex(bytes)} ${maybe[group]}`)
    begin = end
  })
}

async function duckdbFile(ratio) {
  const file = `duckdb-${ratio}.parquet`
  const columns = Object.entries(DUCKDB_COLUMNS)
  await query(
    `COPY (SELECT ${columns.map(([name, { sql }]) => `${sql('i')} AS ${name}`).join(', ')} FROM range(${ROWS}) t(i))
     TO '${file}' (FORMAT parquet, ROW_GROUP_SIZE ${ROW_GROUP_ROWS}, DICTIONARY_SIZE_LIMIT ${ROWS},
                   BLOOM_FILTER_FALSE_POSITIVE_RATIO ${ratio})`)
  // What the file holds, which for zeros is not what was written: a row group keeps the first of
  // 0.0 and -0.0.
  const rows = await query(`SELECT * FROM '${file}'`)
  for (const [name, { sql, encode, probed = true }] of columns) {
    const candidates = await query(`SELECT i, ${sql('i')} AS value FROM (SELECT unnest([${rowsToProbe()}])::BIGINT AS i)`)
    const literals = candidates.filter(({ value }) => probed && value !== null)
      .map(({ i, value }) => ({ sql: sql(`${i}::BIGINT`), bytes: encode(value) }))
    await describeFilters(file, name, rows.map((row) => row[name]), encode, literals)
  }
}

async function hyparquetFile(ratio) {
  const file = `hyparquet-${ratio}.parquet`
  const columns = Object.entries(HYPARQUET_COLUMNS)
  const rows = Array.from({ length: ROWS }, (_, i) => i)
  const columnData = columns.map(([name, { type, js }]) =>
    ({ name, type, data: rows.map(js), bloomFilter: { fpp: ratio } }))
  writeFileSync(file, Buffer.from(parquetWriteBuffer({ columnData, rowGroupSize: 1700 })))
  for (const [name, { sqlType, js, encode }] of columns) {
    const literals = rowsToProbe().map((i) => ({ sql: `'${js(i)}'::${sqlType}`, bytes: encode(js(i)) }))
    await describeFilters(file, name, rows.map(js), encode, literals)
  }
}

for (const ratio of [0.1, 0.01, 0.0001]) await duckdbFile(ratio)
for (const ratio of [0.1, 0.01]) await hyparquetFile(ratio)
process.stdout.write(lines.join('\n') + '\n')

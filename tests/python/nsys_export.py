"""nsys_export.py TRACE.json PLAIN.json OUT.sqlite [PROCESSES] - the ranges, launches and kernels of a trace of PyTorch's profiler as nsys
exports them, and the same trace without sequence numbers, which NVTX does not have."""
import json
import os
import sqlite3
import sys

trace, plain, out = sys.argv[1:4]
processes = int(sys.argv[4]) if len(sys.argv) > 4 else 1
with open(trace, encoding="utf-8") as file:
    document = json.load(file)
events = [e for e in document["traceEvents"] if e.get("cat") != "cpu_op"]
with open(plain, "w", encoding="utf-8") as file:
    json.dump({"traceEvents": events}, file)
if os.path.exists(out):
    os.remove(out)
db = sqlite3.connect(out)
db.executescript("""
    CREATE TABLE StringIds (id INTEGER NOT NULL PRIMARY KEY, value TEXT NOT NULL);
    CREATE TABLE NVTX_EVENTS (start INTEGER NOT NULL, end INTEGER, eventType INTEGER NOT NULL, text TEXT, globalTid INTEGER, textId INTEGER);
    CREATE TABLE CUPTI_ACTIVITY_KIND_RUNTIME (start INTEGER NOT NULL, end INTEGER NOT NULL, globalTid INTEGER, correlationId INTEGER,
        nameId INTEGER NOT NULL);
    CREATE TABLE CUPTI_ACTIVITY_KIND_KERNEL (start INTEGER NOT NULL, end INTEGER NOT NULL, streamId INTEGER NOT NULL,
        correlationId INTEGER, globalPid INTEGER, shortName INTEGER NOT NULL);
    CREATE TABLE CUPTI_ACTIVITY_KIND_MEMCPY (start INTEGER NOT NULL, end INTEGER NOT NULL, streamId INTEGER NOT NULL,
        correlationId INTEGER, globalPid INTEGER);
    INSERT INTO StringIds VALUES (1, 'kernel');
    INSERT INTO NVTX_EVENTS VALUES (5, NULL, 34, 'a mark', 1, NULL);
""")
names = {}
for n in range(processes):
    process = (1000 + n) << 24
    for e in events:
        if e.get("ph") != "X":
            continue
        start, end = round(1000 * e["ts"]), round(1000 * (e["ts"] + e["dur"]))
        thread, correlation = process + int(e["tid"]), e["args"].get("correlation")
        if e.get("cat") == "user_annotation":
            text, number = e["name"], None
            if len(names) % 2 or text in names:  # a registered string
                number = names.setdefault(text, len(names) + 2)
                db.execute("INSERT OR REPLACE INTO StringIds VALUES (?, ?)", (number, text))
                text = None
            else:
                names[text] = len(names) + 2
            db.execute("INSERT INTO NVTX_EVENTS VALUES (?, ?, 59, ?, ?, ?)", (start, end, text, thread, number))
        elif e.get("cat") == "cuda_runtime":
            db.execute("INSERT INTO CUPTI_ACTIVITY_KIND_RUNTIME VALUES (?, ?, ?, ?, 1)", (start, end, thread, correlation))
        elif e.get("cat") == "kernel":
            db.execute("INSERT INTO CUPTI_ACTIVITY_KIND_KERNEL VALUES (?, ?, 7, ?, ?, 1)", (start, end, correlation, process))
        elif e.get("cat") in ("gpu_memcpy", "gpu_memset"):
            db.execute("INSERT INTO CUPTI_ACTIVITY_KIND_MEMCPY VALUES (?, ?, 7, ?, ?)", (start, end, correlation, process))
db.commit()
db.close()

"""Snapshots of PyTorch's allocator: numbers by hand, pickles that run code, damaged files."""

import os
import pickle
import random
import subprocess
import sys
import tempfile
import unittest

import dlmodel

MIB = 1 << 20


def snapshot():
    """Two segments of device 0, 20 and 2 MiB, with 12 + 1 MiB in use; 6 more MiB were in use and 4 more reserved before."""
    block = {"address": 0, "requested_size": 1, "frames": []}
    return {
        "segments": [
            {"device": 0, "address": 0, "total_size": 20 * MIB, "blocks": [
                {**block, "size": 12 * MIB, "state": "active_allocated"}, {**block, "size": 8 * MIB, "state": "inactive"}]},
            {"device": 0, "address": 9, "total_size": 2 * MIB, "blocks": [
                {**block, "size": MIB, "state": "active_pending_free"}, {**block, "size": MIB, "state": "inactive"}]},
            {"device": 1, "address": 0, "total_size": 7 * MIB, "blocks": []}],
        "device_traces": [[
            {"action": "segment_alloc", "addr": 0, "size": 20 * MIB, "stream": 0},
            {"action": "alloc", "addr": 0, "size": 12 * MIB, "stream": 0},
            {"action": "segment_alloc", "addr": 5, "size": 4 * MIB, "stream": 0},
            {"action": "alloc", "addr": 5, "size": 6 * MIB, "stream": 0},
            {"action": "free_requested", "addr": 5, "size": 6 * MIB, "stream": 0},
            {"action": "free_completed", "addr": 5, "size": 6 * MIB, "stream": 0},
            {"action": "segment_free", "addr": 5, "size": 4 * MIB, "stream": 0},
            {"action": "segment_alloc", "addr": 9, "size": 2 * MIB, "stream": 0},
            {"action": "alloc", "addr": 9, "size": MIB, "stream": 0},
            {"action": "snapshot", "addr": 0, "size": 0, "stream": 0}]]}


class Code:
    def __reduce__(self):
        return os.mkdir, ("a folder that must not be made",)


class Snapshots(unittest.TestCase):
    def test_by_hand(self):
        used = dlmodel.read_snapshot(pickle.dumps(snapshot()))
        self.assertEqual((used.allocated_bytes, used.reserved_bytes), (13 * MIB, 22 * MIB))
        self.assertEqual((used.peak_allocated_bytes, used.peak_reserved_bytes), (18 * MIB, 24 * MIB))
        self.assertEqual(used.events, 10)
        other = dlmodel.read_snapshot(pickle.dumps(snapshot()), device=1)
        self.assertEqual((other.allocated_bytes, other.reserved_bytes, other.events), (0, 7 * MIB, 0))
        alone = dlmodel.read_snapshot(pickle.dumps(snapshot()["segments"]))  # torch.cuda.memory_snapshot()
        self.assertEqual((alone.peak_allocated_bytes, alone.events), (13 * MIB, 0))

    def test_against_a_prediction(self):
        row = dlmodel.predict(system="dgx-h100", workload="resnet50", framework="pytorch-ddp", nodes=1).rows()[0]
        errors = dlmodel.read_snapshot(pickle.dumps(snapshot())).against(row)
        tensors = sum(row["memory.%s_bytes" % part] for part in (
            "weights", "gradients", "optimizer", "activations", "buffers"))
        self.assertAlmostEqual(errors["allocated_error_pct"], 100 * (tensors / (18 * MIB) - 1))
        self.assertGreaterEqual(errors["predicted_reserved_bytes"], errors["predicted_allocated_bytes"])

    def test_what_is_refused(self):
        with tempfile.TemporaryDirectory() as folder:
            os.chdir(folder)
            with self.assertRaisesRegex(dlmodel.SnapshotError, "mkdir"):
                dlmodel.read_snapshot(pickle.dumps({"segments": [Code()]}))
            self.assertEqual(os.listdir(folder), [])
            os.chdir("/")
        for wrong, words in (({}, "no list of segments"), (7, "no list of segments"), ({"segments": []}, "no segment of device 0"),
                             ({"segments": [{"device": 0}]}, "total_size"), ({"segments": [3]}, "device"),
                             ({"segments": [{"device": 0, "total_size": 1, "blocks": 3}]}, "blocks")):
            with self.assertRaisesRegex(dlmodel.SnapshotError, words):
                dlmodel.read_snapshot(pickle.dumps(wrong))
        with self.assertRaisesRegex(dlmodel.SnapshotError, "expected a pickle"):
            dlmodel.read_snapshot(b"no pickle")
        with self.assertRaises(FileNotFoundError):
            dlmodel.read_snapshot("/nowhere/snapshot.pickle")

    def test_damaged(self):
        """Whatever the bytes: a snapshot, or that error."""
        draw, whole = random.Random(1), pickle.dumps(snapshot())
        for _ in range(3000):
            data = bytearray(whole)
            for _ in range(draw.randint(1, 4)):
                data[draw.randrange(len(data))] = draw.randrange(256)
            if draw.random() < 0.3:
                del data[draw.randrange(len(data)):]
            try:
                self.assertGreaterEqual(dlmodel.read_snapshot(bytes(data)).peak_reserved_bytes, 0)
            except dlmodel.SnapshotError:
                pass

    def test_command_line(self):
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "s.pickle")
            with open(path, "wb") as file:
                pickle.dump(snapshot(), file)
            done = subprocess.run([sys.executable, "-m", "dlmodel", "snapshot", path], capture_output=True, text=True)
            self.assertEqual((done.returncode, done.stdout.splitlines()[0]),
                             (0, "device 0: 13631488 bytes allocated, 23068672 reserved; at the peak 18874368 and 25165824"), done.stderr)
            with open(path, "wb") as file:
                file.write(b"x")
            done = subprocess.run([sys.executable, "-m", "dlmodel", "snapshot", path], capture_output=True, text=True)
            self.assertEqual(done.returncode, 3)
            self.assertIn("expected a pickle", done.stderr)


if __name__ == "__main__":
    sys.exit(unittest.main(verbosity=1))

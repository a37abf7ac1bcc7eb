"""The Python module against the program's own JSON. DLMODEL, DLMODEL_LIBRARY, DLMODEL_DATA are set by
tests/cli/python.sh."""

import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import threading
import unittest

import dlmodel

DATA = os.environ["DLMODEL_DATA"]
RUNS = os.path.join(DATA, "runs", "tensorflow_2017.csv")


def program(*words):
    """What the program prints; without the time that a search took."""
    done = subprocess.run([os.environ["DLMODEL"], *words, "--json"], capture_output=True, text=True)
    return done.stdout, done.stderr.splitlines()


def untimed(value):
    value = dict(value)
    value.pop("elapsed_s", None)
    return value


class Same(unittest.TestCase):
    def test_predict_is_the_program_byte_for_byte(self):
        request = {"command": "predict", "options": {"system": "iris-v100", "workload": "vgg16", "nodes": "1-8*2"}}
        text, _ = program("predict", "--system=iris-v100", "--workload=vgg16", "--nodes=1-8*2")
        self.assertEqual(dlmodel._model().text(request), text)

    def test_predict(self):
        answer = dlmodel.predict(system="iris-v100", workload="vgg16", nodes=16, framework="pytorch-ddp",
                                 set={"links.inter.bandwidth": "25GB/s"})
        text, messages = program("predict", "--system=iris-v100", "--workload=vgg16", "--nodes=16",
                                 "--framework=pytorch-ddp", "--set=links.inter.bandwidth=25GB/s")
        self.assertEqual(answer, json.loads(text))
        self.assertEqual(list(answer.messages), messages)
        row = answer.rows()[0]
        self.assertGreater(row["memory.total_bytes"], 1e9)
        self.assertEqual(row["iteration_s"], answer["results"][0]["iteration_s"])

    def test_search(self):
        answer = dlmodel.search(system="dgx-a100-80", workload="gpt2_xl", nodes=2, global_batch=64, threads=1)
        text, _ = program("search", "--system=dgx-a100-80", "--workload=gpt2_xl", "--nodes=2", "--global-batch=64",
                          "--threads=1")
        self.assertEqual(untimed(answer), untimed(json.loads(text)))
        self.assertGreater(len(answer.rows()), 1)

    def test_compare(self):
        answer = dlmodel.compare(RUNS, where={"framework": "tensorflow-ps"})
        text, messages = program("compare", "--where=framework=tensorflow-ps", RUNS)
        self.assertEqual(answer, json.loads(text))
        self.assertEqual(list(answer.messages), messages)
        self.assertEqual(len(answer.rows()), len(answer["rows"]))

    def test_compare_rows(self):
        import csv
        with open(RUNS, newline="", encoding="utf-8") as file:
            rows = list(csv.DictReader(file))
        self.assertEqual(dlmodel.compare(rows)["summary"], dlmodel.compare(RUNS)["summary"])

    def test_explain_and_campaign_and_names(self):
        answer = dlmodel.explain(system="iris-v100", workload="vgg16", framework="pytorch-ddp", nodes=4)
        text, _ = program("explain", "--system=iris-v100", "--workload=vgg16", "--framework=pytorch-ddp", "--nodes=4")
        self.assertEqual(answer, json.loads(text))
        answer = dlmodel.campaign(system="iris-v100", nodes=8, workload="resnet50", framework="pytorch-ddp", epochs=2, trials=20,
                                  search="asha")
        tasks = dlmodel.campaign(system="iris-v100", nodes=8, workload="resnet50", framework="pytorch-ddp", epochs=2, trials=4, show="schedule").rows()
        self.assertEqual(len({task["trial"] for task in tasks}), 4)
        text, _ = program("campaign", "--system=iris-v100", "--nodes=8", "--workload=resnet50", "--framework=pytorch-ddp",
                          "--epochs=2", "--trials=20", "--search=asha")
        self.assertEqual(answer, json.loads(text))
        self.assertIn("iris-v100", dlmodel.names("systems"))

    def test_each_command_of_the_service(self):
        """HTTP answers with the bytes of the program (tests/serve/answers.py); so does the library."""
        plan = ["--system=iris-v100", "--workload=resnet50", "--framework=pytorch-ddp", "--nodes=2"]
        requests = {"predict": plan, "explain": plan, "search": [*plan, "--threads=1"], "advise": plan, "compare": [RUNS],
                    "campaign": [*plan, "--epochs=1", "--trials=4"], "match": ["--workloads=resnet50", "--framework=pytorch-ddp"]}
        with open("serve/routes.c", encoding="utf-8") as routes:
            self.assertEqual(set(re.findall(r'^    COMMAND\("(\w+)"', routes.read(), re.M)), set(requests))
        for command, words in requests.items():
            options = dict(w[2:].split("=") for w in words if w.startswith("--"))
            answer = dlmodel._model().call(command, *[w for w in words if not w.startswith("--")], **options)
            text, messages = program(command, *words)
            self.assertEqual(untimed(answer), untimed(json.loads(text)), command)
            self.assertEqual(list(answer.messages), messages, command)

    def test_many_in_their_order(self):
        plans = [{"system": "iris-v100", "workload": "vgg16", "framework": "pytorch-ddp", "nodes": n} for n in (8, 1, 4, 2)]
        self.assertEqual(dlmodel.predict_many(plans, threads=2), [dlmodel.predict(**plan) for plan in plans])
        with self.assertRaises(dlmodel.Error):
            dlmodel.predict_many([*plans, {"workload": "vgg61"}])

    def test_rows_without_json(self):
        """Bit for bit the rows of predict, in the order of the plans, from any number of threads."""
        plans = [{"system": "iris-v100", "workload": "vgg16", "framework": "pytorch-ddp", "nodes": n, "set": {"jitter_frac": 0.01}}
                 for n in (8, 1, 4, 2)]
        plans += [{"system": "dgx-h100", "workload": "llama3_8b", "framework": "megatron-core", "tp": 4, "pp": 2, "global_batch": 16,
                   "micro_batch": 1, "sequence_parallel": True}]
        expected = [dlmodel.predict(**plan).rows()[0] for plan in plans]
        for threads in (1, 2, 3):
            rows = dlmodel.predict_rows(plans, threads=threads)
            for row, want in zip(rows, expected):
                self.assertTrue(set(want["warnings"]) <= set(row["warnings"]))
                self.assertEqual({**row, "warnings": []},
                                 {**{key: value for key, value in want.items() if not isinstance(value, list)}, "warnings": []})
        self.assertEqual(dlmodel.predict_row(**plans[1]), rows[1])
        self.assertEqual(dlmodel.predict_row(workload="gpt3_175b", system="single-k80")["fits"], False)
        self.assertEqual(dlmodel.predict_rows([]), [])
        with self.assertRaises(dlmodel.Error) as caught:
            dlmodel.predict_rows([*plans, {"workload": "vgg61"}], threads=2)
        self.assertEqual((caught.exception.kind, "vgg61" in caught.exception.message), ("usage", True))

    def test_lists(self):
        listed = dlmodel.predict(system="iris-v100", framework=["pytorch-ddp", "horovod-pytorch"], nodes=[1, 2])
        self.assertEqual(listed.rows(), dlmodel.predict(system="iris-v100", framework="pytorch-ddp,horovod-pytorch", nodes="1,2").rows())

    def test_plot(self):
        if shutil.which("gnuplot") is None:
            self.skipTest("no gnuplot")
        with tempfile.TemporaryDirectory() as folder:
            path = dlmodel.plot("breakdown", output=os.path.join(folder, "a b.svg"), system="iris-v100", framework="pytorch-ddp",
                                nodes=2, set={"links.inter.bandwidth": "25GB/s"})
            with open(path, encoding="utf-8") as file:
                self.assertIn("<svg", file.read())
            with self.assertRaises(dlmodel.Error) as caught:
                dlmodel.plot("nothing", output=path)
            self.assertIn("no plot 'nothing'", caught.exception.message)

    def test_pandas(self):
        try:
            import pandas
        except ImportError:
            self.skipTest("no pandas")
        answer = dlmodel.predict(system="iris-v100", workload="vgg16", nodes="1-4*2", framework="pytorch-ddp")
        frame = answer.frame()
        self.assertTrue(frame.equals(pandas.DataFrame(answer.rows())))
        self.assertEqual(list(frame["nodes"]), [1, 2, 4])
        self.assertTrue((frame["memory.total_bytes"] > 0).all())


class Errors(unittest.TestCase):
    def test_structured(self):
        with self.assertRaises(dlmodel.Error) as caught:
            dlmodel.predict(workload="vgg61")
        self.assertEqual((caught.exception.kind, caught.exception.status), ("usage", 2))
        self.assertIn("vgg61", caught.exception.message)
        with self.assertRaises(dlmodel.Error) as caught:
            dlmodel.compare([{"system": "iris-v100", "nodes": "many"}])
        self.assertEqual((caught.exception.kind, caught.exception.file), ("input", "rows-1.csv"))
        with self.assertRaises(dlmodel.Error):
            dlmodel.predict(output="/tmp/never-written")
        with self.assertRaises(dlmodel.Error):
            dlmodel.predict(no_such_option=1)

    def test_no_is_an_answer(self):
        with self.assertRaises(dlmodel.Error) as caught:
            dlmodel.predict(system="single-k80", workload="gpt3_175b", framework="pytorch-ddp")
        self.assertEqual(caught.exception.kind, "no")
        self.assertFalse(caught.exception.answer.rows()[0]["fits"])

    def test_names_only(self):
        with dlmodel.Model(DATA, names_only=True) as model:
            for path in ("/etc/passwd.json", "./x.json", DATA + "/../secret.json", "../systems/iris-v100.json"):
                for option in ("system", "workload", "framework", "layers", "measured"):
                    with self.assertRaises(dlmodel.Error) as caught:
                        model.predict(**{option: path})
                    self.assertEqual(caught.exception.kind, "usage", (option, path, caught.exception))
            with self.assertRaises(dlmodel.Error):
                model.compare("/etc/passwd")
            with open(os.path.join(DATA, "systems", "iris-v100.json"), encoding="utf-8") as file:
                own = file.read()
            answer = model.predict(system="mine.json", files={"mine.json": own}, framework="pytorch-ddp")
            self.assertEqual(answer.rows()[0]["iteration_s"],
                             model.predict(system="iris-v100", framework="pytorch-ddp").rows()[0]["iteration_s"])

    def test_cancel(self):
        # tens of millions of plans: long enough that progress is asked on any machine
        request = {
            "system": "dgx-a100-80",
            "workload": "gpt:layers=240,hidden=30240,heads=240,seq=2048,vocab=51200,experts=128,topk=2",
            "nodes": "1,2,3,4,5,6,8,10,12,15,16,18,20,24,30,32,36,40,45,48,60,64,72,80,90,96,120,128,144,160,180,192,240,256",
            "global_batch": 46080, "threads": 1, "memory": "1e15", "objective": "memory"}
        calls = []

        def stop(done, elapsed_s):
            calls.append((done, elapsed_s))
            return True

        with self.assertRaises(dlmodel.Cancelled):
            dlmodel.search(progress=stop, **request)
        self.assertEqual(len(calls), 1)

        def fail(done, elapsed_s):
            raise KeyError("mine")

        with self.assertRaises(KeyError):
            dlmodel.search(progress=fail, **request)


class Threads(unittest.TestCase):
    def test_one_model(self):
        expected = dlmodel.predict(system="iris-v100", nodes=4)
        wrong = []

        def ask():
            for _ in range(5):
                if dlmodel.predict(system="iris-v100", nodes=4) != expected:
                    wrong.append(1)

        threads = [threading.Thread(target=ask) for _ in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        self.assertEqual(wrong, [])


if __name__ == "__main__":
    sys.exit(unittest.main(verbosity=1))

import fcntl, json, os, sys
from test.support import testresult

# Far above the descriptors that tests count and close, and gone in programs that they start.
out = fcntl.fcntl(1, fcntl.F_DUPFD_CLOEXEC, 200)


def say(test, result):
    line = "\n@@lazaret@@ " + json.dumps({"test": test.id(), "result": result}) + "\n"
    try:
        os.write(out, line.encode())
    except OSError:
        pass


def wrap(name, result):
    original = getattr(testresult.RegressionTestResult, name)

    def method(self, test, *rest):
        say(test, result)
        return original(self, test, *rest)

    setattr(testresult.RegressionTestResult, name, method)


def wrap_subtest():
    original = testresult.RegressionTestResult.addSubTest

    def method(self, test, subtest, error):
        if error is not None:
            say(test, "failed")
        return original(self, test, subtest, error)

    testresult.RegressionTestResult.addSubTest = method


wrap("addSuccess", "ok")
wrap("addFailure", "failed")
wrap("addError", "failed")
wrap("addSkip", "skipped")
wrap("addExpectedFailure", "expected failure")
wrap("addUnexpectedSuccess", "unexpected success")
wrap_subtest()

from test.libregrtest import main

# Module names and options are the arguments; details of failures are among the output.
sys.argv[1:1] = ["-v"]
main()

"""The JUnit file says what the record says, and takes nothing for a success that is none."""

from dataclasses import replace
from xml.etree import ElementTree

from gradekit.findings import Status
from gradekit.report.junit import render

from .samples import FAILED, FAULT, PASSED, PENDING, REJECTED, record


def test_a_graded_report_is_this_document() -> None:
    assert (
        render(record(PASSED, FAILED))
        == """\
<?xml version="1.0" encoding="utf-8"?>
<testsuites>
  <testsuite name="gradekit.softmax" tests="2" time="3.210" failures="1" errors="0" skipped="0">
    <properties>
      <property name="points.earned" value="40" />
      <property name="points.possible" value="70" />
      <property name="points.pending" value="0" />
    </properties>
    <testcase classname="softmax" name="test_small">
      <properties>
        <property name="title" value="Agrees with torch.softmax on small matrices" />
        <property name="kind" value="correctness" />
        <property name="earned" value="40" />
        <property name="possible" value="40" />
      </properties>
    </testcase>
    <testcase classname="softmax" name="test_matches_torch">
      <properties>
        <property name="title" value="Agrees with torch.softmax on any shape, dtype and stride" />
        <property name="kind" value="correctness" />
        <property name="earned" value="0" />
        <property name="possible" value="30" />
      </properties>
      <failure message="At shape [1, 33], float32: 1 of 33 elements is wrong, first at [0, 32]." type="missing-mask">\
submission.py:14: x = tl.load(x_ptr + offs)
x: float32 [1, 33], strides (66, 2)
scale = 0.5
gradekit check submission.py -a softmax -k test_matches_torch --seed 7</failure>
    </testcase>
  </testsuite>
</testsuites>
"""
    )


def test_pending_is_skipped_and_a_fault_is_an_error() -> None:
    suite = ElementTree.fromstring(render(record(PENDING, FAULT)))[0]
    assert (suite.get("failures"), suite.get("errors"), suite.get("skipped")) == ("0", "1", "1")


def test_a_rejected_submission_is_a_failed_test_and_a_fault_of_the_grader_an_error_even_without_checks() -> None:
    suite = ElementTree.fromstring(render(record(**REJECTED)))[0]
    assert (suite.get("tests"), suite.get("failures")) == ("1", "1")
    assert suite.findtext("testcase/failure") == "submission.py:2: def f(x)"
    fault = ElementTree.fromstring(render(record(status=Status.FAULT, message="oh")))[0]
    assert (fault.get("tests"), fault.get("errors")) == ("1", "1")


def test_any_text_makes_a_document_that_parses() -> None:
    nasty = "".join(map(chr, range(0x20))) + "<&>\"']]>\ufffe\uffff\ud800\x1b[31m"
    text = render(record(replace(FAILED, id=nasty, title=nasty, message=nasty), assignment=nasty))
    ElementTree.fromstring(text.encode("utf-8"))

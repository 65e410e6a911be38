"""Find what is known of an error by its number, its name, or a line that mentions it."""

from __future__ import annotations

import re
from collections.abc import Iterator
from difflib import get_close_matches

from formats.errors import NotFoundError
from formats.named_tuple import NamedTuple
from formats.nrt.compiler_facts import COMPILER_FACTS
from formats.nrt.driver_facts import DRIVER_FACTS, KERNEL_FACTS
from formats.nrt.facts import Fact
from formats.nrt.messages import MESSAGES, match_message
from formats.nrt.status import NrtStatus
from formats.nrt.status_facts import STATUS_FACTS
from formats.numerals import parse_decimal

__all__ = ["Mention", "all_facts", "fact_of", "mentions", "status_of"]

# Other spellings: an older header's name, and the documentation's short form.
ALIASES = {"NRT_EXEC_UNIT_DISABLED": NrtStatus.NRT_EXEC_UNIT_UNRECOVERABLE, "NRT_OOB": NrtStatus.NRT_EXEC_OOB}
_NAME = re.compile(r"\bNRT_[A-Z][A-Z0-9_]{2,60}\b", re.ASCII)
_NUMBER = re.compile(
    r"(?:\bstatus(?:[ _]code)?|\berr(?:or)?(?:[ _]code)?|\bNRT Error \w{0,60}\(?)\s{0,3}[:=( ]\s{0,3}"
    r"(?P<code>\d{1,6})\b",
    re.ASCII | re.IGNORECASE,
)
_KERNEL = re.compile(r"\bNEURON_HW_ERR=(?P<kind>[A-Z_]{1,60})(?P<rest>[^\n]{0,400})", re.ASCII)
_PAIR = re.compile(r"(?P<key>[a-z-]{1,20})=(?P<value>\S{0,100})", re.ASCII)
_COMPILER = re.compile(r"\bNCC_(?P<code>[A-Z]{3,4}\d{3})\b|\[(?P<bare>[EI][A-Z]{3}\d{3})\]", re.ASCII)


class Mention(NamedTuple):
    """One error that a text mentions, with the values the text gives for it."""

    fact: Fact
    values: dict[str, str]


def all_facts() -> Iterator[Fact]:
    """Yield everything that is known, family after family."""
    for table in (STATUS_FACTS, DRIVER_FACTS, KERNEL_FACTS, COMPILER_FACTS):
        yield from table.values()
    for _pattern, fact in MESSAGES:
        yield fact


def status_of(text: str) -> NrtStatus | None:
    """Return a status by number or name, in any case and with or without its prefix; None when there is none."""
    word = text.strip().upper()
    number = parse_decimal(word)
    if number is not None:
        return next((status for status in NrtStatus if status == number), None)
    for name in (word, f"NRT_{word}", f"NRT_EXEC_{word}"):
        if name in ALIASES:
            return ALIASES[name]
        if name in NrtStatus.__members__:
            return NrtStatus[name]
    return None


def fact_of(text: str) -> Fact:
    """Return what is known of one error by number or name; NotFoundError names near ones."""
    word = text.strip()
    if word in DRIVER_FACTS:  # "resource" is a family of the driver, "RESOURCE" a status
        return DRIVER_FACTS[word]
    status = status_of(word)
    if status is not None:
        return STATUS_FACTS[status]
    upper, lower = word.upper(), word.lower().replace("-", "_")
    found = (
        COMPILER_FACTS.get(upper.removeprefix("NCC_"))
        or KERNEL_FACTS.get(upper.removeprefix("NEURON_HW_ERR="))
        or DRIVER_FACTS.get(lower.removeprefix("err_"))
    )
    if found is not None:
        return found
    for _pattern, fact in MESSAGES:
        if fact.name == word.lower():
            return fact
    names = [fact.name for fact in all_facts()] + [fact.code for fact in all_facts()]
    near = [name for form in (upper, lower) for name in get_close_matches(form[:80], names, 2, 0.7)]
    raise NotFoundError(f"no error {word[:80]!r} is known" + (f"; did you mean {' or '.join(near)}?" if near else ""))


def mentions(line: str) -> list[Mention]:
    """Return the errors that a line of text mentions: a known message first, then codes and names."""
    found: list[Mention] = []
    message = match_message(line)
    if message is not None:
        found.append(Mention(message.fact, message.values))
    kernel = _KERNEL.search(line)
    if kernel is not None:
        values = {pair["key"]: pair["value"] for pair in _PAIR.finditer(kernel["rest"])}
        fact = KERNEL_FACTS.get(kernel["kind"])
        if fact is None:  # a kind that is not listed here is named as it stands
            fact = Fact(
                "",
                kernel["kind"],
                "hardware",
                "A hardware error that this version has no entry for.",
                (),
                (f"The driver asks for: {values['action']}",) if "action" in values else (),
                provenance="observed",
                cite="the line itself",
            )
        found.append(Mention(fact, values))
    statuses = [status_of(name) for name in _NAME.findall(line)]
    statuses += [status_of(number["code"]) for number in _NUMBER.finditer(line)]
    for status in dict.fromkeys(one for one in statuses if one):  # success is no error to mention
        found.append(Mention(STATUS_FACTS[status], {}))
    for code in _COMPILER.finditer(line):
        fact = COMPILER_FACTS.get(code["code"] or code["bare"])
        if fact is not None:
            found.append(Mention(fact, {}))
    return found

"""Prompts of the assistant pipeline with their right answers, made at random, to train and to measure the small Llama.

In: a random generator. Out: `Example`s: what was heard, seen and asked, and what to answer.

The model must copy what it was given, not know anything. So the contents are random: word salads as transcripts, with
the things that make copying hard (repeated words, hyphens, names that nobody has, digits, quotes), and class names with
counts, two-word names more often than chance.
"""

import base64
import hashlib
import random
import re
from dataclasses import dataclass
from functools import cache
from pathlib import Path

_COCO = (
    "person, bicycle, car, motorcycle, airplane, bus, train, truck, boat, traffic light, fire hydrant, "
    "stop sign, parking meter, bench, bird, cat, dog, horse, sheep, cow, elephant, bear, zebra, giraffe, "
    "backpack, umbrella, handbag, tie, suitcase, frisbee, skis, snowboard, sports ball, kite, baseball "
    "bat, baseball glove, skateboard, surfboard, tennis racket, bottle, wine glass, cup, fork, knife, "
    "spoon, bowl, banana, apple, sandwich, orange, broccoli, carrot, hot dog, pizza, donut, cake, chair, "
    "couch, potted plant, bed, dining table, toilet, tv, laptop, mouse, remote, keyboard, cell phone, "
    "microwave, oven, toaster, sink, refrigerator, book, clock, vase, scissors, teddy bear, hair drier, "
    "toothbrush"
)
COCO = tuple(_COCO.split(", "))
DARKNET = ("motorbike", "aeroplane", "sofa", "tvmonitor", "diningtable", "pottedplant")
LABELS = (*COCO, *DARKNET)
TWO_WORD_LABELS = tuple(label for label in COCO if " " in label)
IRREGULAR_PLURALS = {
    "person": "people",
    "mouse": "mice",
    "knife": "knives",
    "sheep": "sheep",
    "skis": "skis",
    "scissors": "scissors",
    "broccoli": "broccoli",
}

ABOUT_BOTH = (
    "What do you hear and see?",
    "What did you hear and see?",
    "Describe what you hear and see.",
    "Tell me what you hear and see.",
    "What was said and what is in the picture?",
    "What is said and what is shown?",
    "What do you see and hear?",
    "Describe the recording and the picture.",
    "Please describe the scene.",
    "Describe the scene.",
    "What is going on?",
    "What is happening?",
    "What is happening here?",
    "Summarise this.",
    "Please summarise what you were given.",
    "Describe everything.",
    "Tell me everything.",
    "What have you got?",
    "What do you notice?",
    "Describe it.",
    "Describe this.",
    "Explain what you hear and what you see.",
    "What can you hear and see?",
    "Say what you hear and see.",
    "Repeat what was said and count what you see.",
    "What was said, and what do you see?",
    "Report what you hear and see.",
    "What's going on?",
    "What is this?",
    "Hello",
    "Hi!",
    "Tell me about it.",
    "Go on.",
    "Please describe what you hear and see.",
)
ABOUT_RECORDING = (
    "What do you hear?",
    "What did you hear?",
    "What was said?",
    "What is said?",
    "What is said in the recording?",
    "What was said in the recording?",
    "What can you hear?",
    "What does the speaker say?",
    "What did the speaker say?",
    "Repeat what was said.",
    "Please repeat what you heard.",
    "What does the recording say?",
    "Transcribe the recording.",
    "What are the words?",
    "What did they say?",
    "Tell me what was said.",
    "Tell me what you hear.",
    "What is the transcript?",
    "What is being said?",
    "What did the person say?",
    "Describe the recording.",
    "Write down what was said.",
    "What do you hear in the recording?",
    "Who says what?",
    "Quote the speaker.",
)
ABOUT_PICTURE = (
    "What do you see?",
    "What did you see?",
    "What is in the picture?",
    "What is in the image?",
    "What can you see?",
    "What is shown?",
    "What is shown in the picture?",
    "Describe the picture.",
    "Describe the image.",
    "Please describe the picture.",
    "What does the picture show?",
    "What does the image show?",
    "What is in the photo?",
    "Describe the photo.",
    "Which objects do you see?",
    "Which things are in the picture?",
    "List what you see.",
    "Tell me what you see.",
    "Count what you see.",
    "What objects are there?",
    "What do you see in the picture?",
    "What things are shown?",
    "What's in the picture?",
    "What's in this image?",
    "Name what you see.",
)
HOW_MANY = (
    "How many {} do you see?",
    "How many {} are there?",
    "How many {} are in the picture?",
    "Count the {}.",
    "How many {} are shown?",
    "How many {} can you see?",
    "Please count the {} in the picture.",
    "How many {} does the picture show?",
)
HELD_OUT_ABOUT_BOTH = (
    "Tell me what you can hear and see.",
    "Describe what was said and what is shown.",
    "What is here?",
)
HELD_OUT_ABOUT_RECORDING = ("Please tell me what was said.", "What can you hear in the recording?")
HELD_OUT_ABOUT_PICTURE = ("What can you see in the picture?", "Please describe the image.")

_SHORT = "a i an am as at be by do go he if in is it me my no of on or so to up us we"
_COMMON = (
    "the the the the a a and and to to of of in is it you that he was for on are with as i his they be at "
    "one have this from or had by but some what there we can out other were all your when up use how said "
    "an each she I I I I I I'm I'd I'll I've don't can't it's that's no no yes okay please thank"
)
SHORT_WORDS = frozenset(_SHORT.split())
COMMON = tuple(_COMMON.split())


@dataclass(frozen=True, slots=True, kw_only=True)
class Example:
    """One prompt and its right answer.

    transcript, counts None: not given; transcript "": nothing heard; bare: the question comes without the prompt step,
    as from `tritonkit chat`.
    """

    transcript: str | None
    counts: tuple[tuple[str, int], ...] | None
    question: str
    answer: str
    bare: bool = False


@cache
def vocabulary(held_out: bool) -> tuple[str, ...]:
    """English words, the frequent ones first: those of GPT-2's vocabulary (in openai-whisper's package).

    One word in ten, chosen by its hash, is kept out of training and used for measuring alone.
    """
    import whisper

    lines = (Path(whisper.__file__).parent / "assets" / "gpt2.tiktoken").read_text(encoding="ascii").splitlines()
    tokens = (base64.b64decode(line.split()[0]).decode("utf-8", errors="replace") for line in lines)
    words = (token[1:] for token in tokens if re.fullmatch(r" [a-z]{1,14}", token))
    known = (word for word in words if len(word) > 2 or word in SHORT_WORDS)
    return tuple(word for word in known if (hashlib.sha256(word.encode()).digest()[0] < 26) == held_out)


def plural(label: str) -> str:
    """The English plural of a class name; the last word decides."""
    *before, last = label.split(" ")
    return " ".join([*before, IRREGULAR_PLURALS.get(last) or _regular_plural(last)])


def _regular_plural(word: str) -> str:
    if word.endswith(("s", "x", "z", "ch", "sh")):
        return word + "es"
    if word.endswith("y") and word[-2:-1] not in "aeiou":
        return word[:-1] + "ies"
    return word + "s"


def listing(counts: tuple[tuple[str, int], ...]) -> str:
    """Counts in words: `4 people, 2 dogs and 1 bus`."""
    parts = [f"{count} {label if count == 1 else plural(label)}" for label, count in counts]
    return " and ".join([", ".join(parts[:-1]), parts[-1]] if len(parts) > 1 else parts)


def answer_for(transcript: str | None, counts: tuple[tuple[str, int], ...] | None, about: str) -> str:
    """The right answer; `about` is "both", "recording" or "picture"."""
    heard = transcript is not None and (f'I heard "{transcript}"' if transcript else "I heard nothing")
    seen = counts is not None and (f"I see {listing(counts)}" if counts else "I see nothing")
    if about == "recording":
        return _end(heard) if heard else "I was given no recording."
    if about == "picture":
        return _end(seen) if seen else "I was given no picture."
    if not heard and not seen:
        return "I was given no recording and no picture."
    return _end(" and ".join(part for part in (heard, seen) if part))


def _end(sentence: str) -> str:
    return sentence if sentence.endswith('"') else sentence + "."


class ExampleMaker:
    """Random examples. With `held_out`, the contents hold words and the questions are phrasings never trained on."""

    def __init__(self, seed: int | str, *, held_out: bool = False, max_words: int = 24) -> None:
        self.random = random.Random(f"{seed}")
        self.max_words = max_words
        self.held_out = held_out
        self._words = (vocabulary(False), vocabulary(True))

    def example(self) -> Example:
        has_recording, has_picture = self.random.choices(
            [(True, True), (True, False), (False, True), (False, False)], [68, 14, 14, 4]
        )[0]
        transcript = self._some_transcript() if has_recording else None
        counts = self._counts() if has_picture else None
        about = self.random.choices(["both", "recording", "picture"], [62, 15, 23])[0]
        return Example(
            transcript=transcript,
            counts=counts,
            question=self._question(about, counts),
            answer=answer_for(transcript, counts, about),
            bare=not has_recording and not has_picture and about == "both",
        )

    def _question(self, about: str, counts: tuple[tuple[str, int], ...] | None) -> str:
        chance = self.random.random()
        if about == "both" and chance < 0.2:  # whatever is asked, a full report is a fair answer
            return self._sentence(self.random.randint(1, 8))
        if about == "picture" and chance < 0.35:  # and for a number, all numbers
            return self.random.choice(HOW_MANY).format(plural(self._asked_label(counts)))
        trained = {"both": ABOUT_BOTH, "recording": ABOUT_RECORDING, "picture": ABOUT_PICTURE}
        kept = {
            "both": HELD_OUT_ABOUT_BOTH,
            "recording": HELD_OUT_ABOUT_RECORDING,
            "picture": HELD_OUT_ABOUT_PICTURE,
        }
        return self.random.choice((kept if self.held_out else trained)[about])

    def _asked_label(self, counts: tuple[tuple[str, int], ...] | None) -> str:
        if counts and self.random.random() < 0.7:
            return self.random.choice(counts)[0]
        return self._label()

    def _counts(self) -> tuple[tuple[str, int], ...]:
        if self.random.random() < 0.06:
            return ()
        labels = dict.fromkeys(self._label() for _ in range(self.random.choice([1, 1, 2, 2, 2, 3, 3, 4, 5, 6])))
        return tuple((label, self._count()) for label in labels)

    def _count(self) -> int:
        return self.random.choice([1, 1, 1, 1, 2, 2, 3, 4, 5, self.random.randint(6, 12), self.random.randint(10, 40)])

    def _label(self) -> str:
        kind = self.random.random()
        if kind < 0.16:
            label = " ".join(self._plain_word() for _ in range(self.random.choice([1, 2])))
            return label.capitalize() if self.random.random() < 0.3 else label
        return self.random.choice(TWO_WORD_LABELS if kind < 0.44 else LABELS)

    def _plain_word(self) -> str:
        while True:
            word = self._word()
            if len(word) > 2 and not word.endswith(("s", "x", "z", "y", "ch", "sh")):
                return word

    def _some_transcript(self) -> str:
        if self.random.random() < 0.05:
            return ""
        return self.transcript(int(2 ** self.random.uniform(0.6, _log2(self.max_words))))

    def transcript(self, words_left: int) -> str:
        """Sentences of so many words."""
        sentences = []
        while words_left > 0:
            length = min(words_left, self.random.randint(1, 25))
            sentences.append(self._sentence(length))
            words_left -= length
        return " ".join(sentences)

    def _sentence(self, length: int) -> str:
        words = [self._spoken() for _ in range(length)]
        if length > 3 and self.random.random() < 0.08:  # nothing but a few words, over and over
            few = [self._spoken() for _ in range(self.random.randint(2, 6))]
            words = [self.random.choice(few) for _ in range(length)]
        elif length > 3 and self.random.random() < 0.35:
            self._repeat(words)
        words = [word + "," if self.random.random() < 0.06 else word for word in words]
        text = " ".join(words)
        if self.random.random() < 0.88:
            text = text[0].upper() + text[1:]
        return text.rstrip(",") + self.random.choices([".", "?", "!", "", "..."], [70, 10, 6, 12, 2])[0]

    def _repeat(self, words: list[str]) -> None:
        """Let a word or a run of words come again (and again) in the sentence, in place of others."""
        run = self.random.choice([1, 1, 1, 2, 3])
        start = self.random.randrange(len(words) - run + 1)
        repeated = words[start : start + run]
        for _ in range(self.random.choice([1, 1, 2, 3])):
            at = self.random.randrange(len(words) - run + 1)
            words[at : at + run] = repeated

    def _spoken(self) -> str:
        """One word as a transcript may hold it."""
        kind = self.random.random()
        if kind < 0.30:
            return self.random.choice(COMMON)
        if kind < 0.74:
            return self._word()
        if kind < 0.80:
            return self._word().capitalize()
        if kind < 0.84:
            return self._invented_name()
        if kind < 0.87:
            return "-".join(self._word() for _ in range(self.random.choice([2, 2, 3])))
        if kind < 0.90:
            return self._word() + self.random.choice(["'s", "'t", "'re", "'ll", "n't"])
        if kind < 0.97:
            return self._number()
        return self.random.choice(
            [f'"{self._word()}"', f"({self._word()})", self._word().upper(), "I", "café", "naïve"]
        )

    def _word(self) -> str:
        words = self._words[1 if self.held_out and self.random.random() < 0.5 else 0]
        rank = int(20 * (len(words) / 20) ** self.random.random()) - 1 if self.random.random() < 0.7 else None
        return words[rank] if rank is not None else self.random.choice(words)

    def _invented_name(self) -> str:
        syllables = self.random.randint(2, 4)
        name = "".join(
            self.random.choice("bcdfghjklmnprstvwz")
            + self.random.choice("aeiou")
            + self.random.choice(["", "", "n", "r", "l"])
            for _ in range(syllables)
        )
        return name.capitalize()

    def _number(self) -> str:
        digits = "".join(self.random.choice("0123456789") for _ in range(self.random.choice([1, 1, 2, 2, 3, 4])))
        shape = self.random.choice(["{}", "{}", "{}", "{}-{}", "${}", "{}%", "{},000", "{}.{}", "{}th", "{}:{}"])
        return shape.format(digits, self.random.randint(1, 9999))


def _log2(number: int) -> float:
    return number.bit_length() - 1 + (number / 2 ** (number.bit_length() - 1) - 1)

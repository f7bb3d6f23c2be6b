"""`python -m tests.hands MODE FILE [HAND …]`: what the hands have left, as JSON."""

from tests.hands import callbacks, interruptions, objects, programs, steps
from tests.hands.hand import main

main((callbacks.HANDS, objects.HANDS, steps.HANDS, interruptions.HANDS, programs.HANDS))

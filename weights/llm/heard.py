"""Transcripts for measuring: what Whisper wrote for real recordings, and sentences as people say them.

Never trained on.
"""

# tiny.en and base on LibriVox readings, PocketSphinx's test recordings and a synthetic voice, mishearings included
WHISPER_HEARD = (
    "And Mr. John Dashwood had then leisure to consider how much there might be prudently in his power to do for them.",
    "He was not an old-sposed young man.",
    "He was not an ill-disposed young man.",
    "Unless to be rather cold-hearted and rather selfish is to be ill-disposed.",
    "Had he married a more amiable woman, he might have been made still more respectable than he was.",
    "He might even have been made amiable himself.",
    "Go forward 10 meters.",
    "Go somewhere and do something.",
    "33 for 692.",
    "33-4692",
    "10 of clubs.",
    "10 of cloves.",
    "8 of spades, 4 of close, 7 of hearts.",
    "The quick brown fox jump over the lazy dog. Please count the people and the buses in the picture.",
    "The quick roundfark stump, sober mule in dog. Please count the people and the mercies in the picture.",
    "Please count the people and the buses in the picture.",
)

PEOPLE_SAY = (
    "Hello, can anybody hear me?",
    "Please turn left at the next corner and then stop.",
    "I'd like a cup of coffee and a piece of cake, please.",
    "The meeting starts at 9:30 tomorrow morning in room 214.",
    "Where did you put the keys to the blue car?",
    "No, no, no, that is not what I said at all!",
    "My phone number is 555-0142, and my name is Tavelin Orru.",
    "The train to the airport leaves from platform 7 in 12 minutes.",
    "She said that he said that they had said nothing.",
    "Is there a dog in the garden, or is it the neighbour's cat again?",
    "Yes.",
    "Okay, let's go.",
    "Thank you very much, thank you, thank you.",
    "It costs $4,250 and not a cent less.",
    "We were here before, and we will be here after, and after that as well.",
    "The end of the road is the end of the world, or so the people at the end of the road say.",
    "One two three four five six seven eight nine ten.",
    "Stop! Do not open the door until the light turns green.",
    "What time is it in Honolulu right now?",
    "I think the weather will be fine on Wednesday, but I am not so sure about Thursday and Friday.",
    "Put the red box on the table, the green box under the table, and the blue box next to the red box.",
    "It's a well-known, run-of-the-mill, state-of-the-art thing.",
    "Dr. Anneliese Quambusch will see you now.",
    "Well... I don't know what to say.",
    "The company's share price fell by 3.7% on Monday.",
    "Turn the lights off in the kitchen and set the heating to 19 degrees.",
    "You can't teach an old dog new tricks, can you?",
    "Twenty years ago there was nothing here but grass, sheep and a very old church.",
    "The bus was late, the bus was full, and the bus was cold.",
    "Good morning, ladies and gentlemen, this is your captain speaking.",
)

"""What the composed training prompts are made of: templates and the subjects they are filled with.

Written for this project. ``benchmarks/held_out.py`` has the prompts that the draft is judged by; they
come from other templates, and a test compares the two.
"""

SUBJECTS = """
bees; volcanoes; the Roman Empire; sourdough bread; chess openings; black holes; the human heart;
bicycles; compound interest; penguins; the French Revolution; solar panels; yoga; jazz; earthquakes;
coral reefs; the stock market; photosynthesis; time management; medieval castles; espresso; machine
learning; whales; public speaking; the Silk Road; vaccines; origami; marathon running; democracy;
magnets; the moon; budgeting; gardening in small spaces; the Great Wall of China; cloud computing;
dinosaurs; knitting; electric cars; the water cycle; impressionist painting; lightning; job
interviews; ancient Egypt; antibiotics; hiking; supply and demand; the Amazon rainforest; podcasts;
tea; glaciers; encryption; houseplants; owls; inflation; the Renaissance; nutrition; robots; haiku;
the periodic table; carpentry; tides; elephants; negotiation; bridges; the Vikings; meditation;
batteries; spiders; wine; satellites; dreams; the Olympic Games; chocolate; recycling; the immune
system; typography; rainbows; camels; insurance; the printing press; first aid; guitars; plate
tectonics; cheese; search engines; wolves; friendship; the Industrial Revolution; sleep; drones;
opera; mushrooms; blockchain; gravity; cats; leadership; trains; the Cold War; vitamins;
photography; snow; maps; databases; honey; the brain; taxes; lighthouses; tornadoes; dance;
Shakespeare; rice; airports; bats; courage; the ozone layer; swimming; telescopes; perfume; queues;
ants; museums; diabetes; novels; rivers; salt; clocks; user interfaces; horses; forgiveness;
concrete; the United Nations; allergies; watercolours; deserts; wheat; version control; dolphins;
creativity; windmills; the Space Race; exercise; cartoons; islands; sugar; paper; operating systems;
butterflies; patience; tunnels; the Aztecs; posture; poetry; forests; olive oil; glass; probability;
sharks; teamwork; elevators; the Ottoman Empire; anxiety; sculpture; lakes; spices; steel;
recursion; eagles; curiosity; submarines; feudalism; headaches; film music; wetlands; potatoes;
rubber
"""

INSTRUCTIONS = """
Give me an overview of {}.
What should a beginner know about {}?
Tell me five surprising facts about {}.
Write a short poem about {}.
Write a short story that involves {}.
Describe {} to someone who has never heard of it.
What are common misconceptions about {}?
How has {} changed over the last hundred years?
Why do people care about {}?
Write a blog post introduction about {}.
Compare {} and {}.
What do {} and {} have in common?
Make a quiz of three questions about {}.
List ten words related to {}.
Write a tweet about {}.
What is the most difficult thing about {}?
Write a dialogue between a teacher and a student about {}.
Give step by step instructions for learning about {}.
What are the advantages and disadvantages of {}?
Write an email to a colleague about {}.
Who were important people in the history of {}?
Explain {} in one paragraph.
Create a table of contents for a book about {}.
I have to give a talk on {}. Where do I start?
What would happen if there were no {}?
Is {} worth studying?
Write a product description connected with {}.
Suggest a title for an essay about {}.
Translate the word for {} into French, Spanish and German.
How are {} and {} connected?
Write a Python class that models {}.
Write a function in Python for a program about {}.
Write an SQL query for a table about {}.
Give me a JSON object that describes {}.
Write a shell script for a project about {}.
Write HTML for a page about {}.
Solve this: I have 12 books about {} and give away 5. How many are left?
If one ticket to an event about {} costs 8 dollars, what do 7 tickets cost?
What is your opinion on {}?
Hello! Can we talk about {}?
"""

OPENINGS = r"""
The history of {} begins
{} can be understood as
One of the first things people notice about {} is
In recent years, {} has become
A guide to {}.
Chapter 1. {}
The study of {}
She had never thought much about {} until
He wrote a letter about {}:
Question: What is {}?\nAnswer:
Abstract: We study {}
The most important facts about {}:\n1.
According to experts, {}
There is an old tale about {}.
When it comes to {}, most people
# {}\n\n##
My grandmother used to say about {} that
News: {}
It is often said that {} and {}
The difference between {} and {} is
Teacher: Today we talk about {}.\nStudent:
Dear Sir or Madam, I am writing about {}
The best way to learn about {} is
To make sense of {}, consider
"""

REQUESTS_ABOUT_A_TEXT = r"""
Summarize the following text.\n\n{}
{}\n\nWhat is the main point of this text?
Copy the text below without any change.\n\n{}
Rewrite this text in simpler words: {}
Give this text a title:\n{}
Correct the mistakes in this text:\n\n{}
List the key points of this passage.\n\n{}
Continue this text: {}
{}\n\nAsk three questions about the passage above.
Say this again, word by word: "{}"
Make this text shorter: {}
Turn this into a list:\n\n{}
"""


def lines(block: str) -> list[str]:
    """The templates of a block: one a line, with line breaks written as in Python."""
    return [line.replace(r"\n", "\n") for line in block.strip("\n").split("\n")]


def subjects() -> list[str]:
    return [subject.strip() for subject in SUBJECTS.replace("\n", " ").split(";")]

#include "tutorials/demos/stories.h"

#include <algorithm>
#include <set>

#include "tensor/check.h"

namespace pellucid::demos {

namespace {

std::vector<std::string> girl(const std::string& name) { return {name, "she", "her"}; }
std::vector<std::string> boy(const std::string& name) { return {name, "he", "his"}; }

// No value is the beginning of another of its domain, so a told word is known at its last letter.
std::vector<Domain> domains() {
  return {
      {"name",
       {"", "he", "his"},
       {girl("Anna"), boy("Ben"), girl("Ella"), boy("Finn"), boy("Leo"), girl("Lily"), boy("Max"),
        girl("Mia"), girl("Rosa"), boy("Sam"), boy("Tom"), girl("Zoe")}},
      // The friend comes from other families than the hero: who is who need not be remembered.
      {"friend",
       {""},
       {{"Adam"}, {"Clara"}, {"Emil"}, {"Greta"}, {"Hugo"}, {"Iris"}, {"Nora"}, {"Otto"}}},
      {"colour",
       {"", "a"},
       {{"red", "a red"},
        {"blue", "a blue"},
        {"green", "a green"},
        {"yellow", "a yellow"},
        {"orange", "an orange"},
        {"pink", "a pink"},
        {"golden", "a golden"},
        {"silver", "a silver"}}},
      {"thing",
       {""},
       {{"ball"},
        {"bell"},
        {"boat"},
        {"book"},
        {"cup"},
        {"doll"},
        {"drum"},
        {"hat"},
        {"kite"},
        {"lamp"},
        {"ring"},
        {"train"}}},
      {"place",
       {""},
       {{"under the bed"},
        {"under the rug"},
        {"near the door"},
        {"near the tree"},
        {"in the garden"},
        {"in the barn"},
        {"on the shelf"},
        {"on the bench"},
        {"by the pond"},
        {"by the window"}}},
      {"food",
       {""},
       {{"apples"},
        {"berries"},
        {"buns"},
        {"carrots"},
        {"cherries"},
        {"nuts"},
        {"pears"},
        {"plums"}}},
      {"animal",
       {""},
       {{"bear"},
        {"cat"},
        {"dog"},
        {"duck"},
        {"fox"},
        {"goat"},
        {"hen"},
        {"mouse"},
        {"pig"},
        {"pony"}}},
      {"coat",
       {"", "a"},
       {{"black", "a black"},
        {"brown", "a brown"},
        {"grey", "a grey"},
        {"white", "a white"},
        {"tiny", "a tiny"},
        {"old", "an old"}}},
  };
}

std::vector<Variable> variables() {
  return {{"hero", "name"},   {"friend", "friend"}, {"colour", "colour"}, {"thing", "thing"},
          {"place", "place"}, {"food", "food"},     {"animal", "animal"}, {"coat", "coat"}};
}

Step weather() {
  return {{2, "Then it rained all day."}, {2, "The wind blew all night."},
          {1, "Soon the moon came out."}, {1, "The birds sang a song."},
          {1, "A little snow fell."},     {1, "The next day was warm."}};
}

// A story holds one fact of each kind, told once, so that what is asked for later can be looked up
// in one place. A small model with RoPE recalled all of 555 such facts after 4 million characters;
// with two of a kind (whose thing was it, and where did that one lie?) 325 of 483 after 6 million.

// Somebody hides a thing, and is given what they like.
Plot hidden() {
  return {1,
          {{{2, "[hero] had [colour.a] [thing]."},
            {1, "Once [hero] found [colour.a] [thing]."},
            {1, "Once [hero] made [colour.a] [thing]."}},
           {{2, "{hero.He} liked [food]."}, {1, "{hero.He} ate only [food]."}},
           {{1, "{hero} hid the {thing} [place]."},
            {1, "{hero} put the {thing} [place]."},
            {1, "{hero} left the {thing} [place]."}},
           weather(),
           {{1, "[friend] asked, \"Where is your {thing?}?\""},
            {1, "[friend] looked for the {thing?}."}},
           {{2, "\"It is {place?},\" said {hero}."}, {1, "And there it was, {place?}!"}},
           {{1, "Then {friend} gave {hero} some {food?}."},
            {1, "Then {friend} and {hero} ate {food?}."}}}};
}

// A thing is found, and goes back to its owner.
Plot lost_thing() {
  return {1,
          {{{2, "[hero] had [colour.a] [thing]."}, {1, "Once [hero] got [colour.a] [thing]."}},
           {{1, "{hero.He} left it [place] and went home."},
            {1, "{hero.He} put it [place] and ran away."}},
           weather(),
           {{1, "[friend] saw {colour.a?} {thing?} {place?}."},
            {1, "[friend] looked {place?} and found {colour.a?} {thing?}."}},
           {{1, "\"Whose {thing} is this?\" said {friend}."},
            {1, "{friend} asked whose {thing} it was."}},
           {{1, "It was the {thing} that {hero?} had lost."},
            {1, "{hero?} was happy to have it back."}}}};
}

// A pet is lost, and comes back for what it likes.
Plot lost_pet() {
  return {
      1,
      {{{2, "[hero] had [coat.a] [animal] that liked [food]."},
        {1, "Once [hero] met [coat.a] [animal] that ate only [food]."}},
       {{1, "The {animal} slept [place]."}, {1, "At night it slept [place]."}},
       weather(),
       {{1, "\"My {animal?} is lost!\" said {hero}."}, {1, "{hero} could not find the {animal?}."}},
       {{1, "So [friend] put some {food?} {place?}."},
        {1, "\"Look {place?},\" said [friend], \"and call it with {food?}.\""}},
       {{1, "The {coat?} {animal} came back and {hero} was happy."},
        {1, "Soon {hero} had the {coat?} {animal} back."}}}};
}

}  // namespace

const Grammar& story_grammar() {
  static const Grammar grammar(domains(), variables(), {hidden(), lost_thing(), lost_pet()});
  return grammar;
}

std::string sample_story(Generator& rng) { return story_grammar().sample(rng); }

bool accepts(std::string_view text) { return story_grammar().count_derivations(text, 1) > 0; }

std::optional<double> log_probability(std::string_view text) {
  return story_grammar().log_probability(text);
}

int64_t count_derivations(std::string_view text, int64_t limit) {
  return story_grammar().count_derivations(text, limit);
}

double entropy_floor() { return story_grammar().entropy() / story_grammar().mean_length(); }

double entropy_floor(const std::vector<std::string>& stories) {
  double nats = 0, characters = 0;
  for (const std::string& story : stories) {
    const std::optional<double> log_p = log_probability(story);
    CHECK_ARG(log_p, "entropy_floor: not a story of the grammar: ", story);
    nats -= *log_p;
    characters += double(story.size());
  }
  return nats / characters;
}

std::string story_alphabet() { return story_grammar().alphabet(); }

std::vector<Recall> recalls(std::string_view story) { return story_grammar().recalls(story); }

RecallRate recall_rate(const std::vector<Recall>& asked, const Score& score,
                       std::string_view kind) {
  RecallRate rate;
  for (const Recall& recall : asked) {
    if (!kind.empty() && kind != recall.kind) continue;
    const double right = score(recall.prefix, recall.answer);
    const bool best = std::all_of(
        recall.candidates.begin(), recall.candidates.end(), [&](const std::string& candidate) {
          return candidate == recall.answer || score(recall.prefix, candidate) < right;
        });
    ++rate.asked;
    rate.right += best;
    rate.chance += 1 / double(recall.candidates.size());
  }
  if (rate.asked > 0) {
    rate.right /= double(rate.asked);
    rate.chance /= double(rate.asked);
  }
  return rate;
}

}  // namespace pellucid::demos

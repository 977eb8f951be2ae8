// The demo's folder: what stands there already is not touched, and what it measured is told even
// where it cannot be kept.
#include "desk.h"

TEST_CASE("demo --out overwrites nobody's file") {
  const Desk desk;
  std::filesystem::create_directory(desk.folder.file("own"));
  spit(desk.folder.file("own/stories.txt"), "my own\n");
  desk.refused({"demo", "--out", "own"}, {"own: holds a file stories.txt already, which this run "
                                          "would write; give a new folder"});
}

TEST_CASE("a demo's training does not go on") {
  const Desk desk;
  {
    Process demo({"demo", "--out", "d"}, {.folder = desk.folder.path.string()});
    while (demo.running() && lines(slurp(desk.folder.file("d/metrics.jsonl"))) < 2) usleep(1000);
    demo.signal(SIGKILL);
    demo.wait();
  }
  desk.refused({"train", "--resume", "d"},
               {"d: is a demo's, whose training does not go on; begin another with: ",
                " demo --out FOLDER\n"});
  desk.refused({"demo", "--out", "d"},
               {"d: holds a run already (config.json); it is a demo's, whose training does not go "
                "on; give a new folder"});
}

TEST_CASE("on a full disk the demo tells what it measured all the same") {
  const Desk desk;
  const Ended demo = desk.pellucid({"demo", "--minutes", "0.05", "--out", "d"},
                                   {.file_limit = 200000});  // the model has more bytes
  INFO(demo.out);
  CHECK(demo.code == 1);
  CHECK(demo.err.find("d/model.safetensors: cannot be written") != std::string::npos);
  CHECK(demo.out.find("Right by grammar: ") != std::string::npos);
}

// The main of every test program. Cases whose name begins with "long:" run only with
// PELLUCID_TEST_ALL set. For the table at the end of a run it prints "SKIPPED | case | why" and
// "CASES | passed | failed". A case that cannot run everywhere says so where it is declared:
//   TEST_CASE("name" * doctest::skip(!possible) * doctest::description("why it may be skipped"))
#define DOCTEST_CONFIG_IMPLEMENT
#include <doctest/doctest.h>

#include <cstdlib>
#include <cstring>
#include <iostream>

namespace {

struct Table : doctest::IReporter {
  explicit Table(const doctest::ContextOptions& options) : to_stdout(!options.count) {}
  void report_query(const doctest::QueryData&) override {}
  void test_run_start() override {}
  void test_run_end(const doctest::TestRunStats& s) override {
    std::cout << "CASES | " << s.numTestCasesPassingFilters - s.numTestCasesFailed << " | "
              << s.numTestCasesFailed << std::endl;
  }
  void test_case_start(const doctest::TestCaseData&) override {}
  void test_case_reenter(const doctest::TestCaseData&) override {}
  void test_case_end(const doctest::CurrentTestCaseStats&) override {}
  void test_case_exception(const doctest::TestCaseException&) override {}
  void subcase_start(const doctest::SubcaseSignature&) override {}
  void subcase_end() override {}
  void log_assert(const doctest::AssertData&) override {}
  void log_message(const doctest::MessageData&) override {}
  void test_case_skipped(const doctest::TestCaseData& test) override {
    const char* why = !test.m_skip         ? "./pellucid test --all"
                      : test.m_description ? test.m_description
                                           : "needs PELLUCID_DATA";
    std::cout << "SKIPPED | " << test.m_name << " | " << why << std::endl;
  }
  bool to_stdout;
};
REGISTER_LISTENER("table", 1, Table);

}  // namespace

int main(int argc, char** argv) {
  doctest::Context context;
  if (!std::getenv("PELLUCID_TEST_ALL")) context.addFilter("test-case-exclude", "long:*");
  context.applyCommandLine(argc, argv);
  return context.run();
}

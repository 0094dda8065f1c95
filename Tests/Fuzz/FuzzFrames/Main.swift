import Foundation

/// The fuzzer of the frame decoder; `deploy/fuzz` builds and runs it.
@main
struct Main {
    static func main() {
        var (count, arguments) = (CommandLine.argc, CommandLine.unsafeArgv)
        exit(
            runFuzzer(&count, &arguments) { start, count in
                let began = clock()
                FrameStream(UnsafeBufferPointer(start: start, count: count)).check()
                // libFuzzer keeps the input of a process that ends here.
                precondition(clock() - began <= inputLimitMicroseconds, "the input takes too much processor time")
                return 0
            })
    }
}

/// Limit of processor time for one input, in microseconds. libFuzzer's own limit is in wall-clock time, which other
/// processes on a busy machine lengthen.
private let inputLimitMicroseconds = 1_000_000

/// libFuzzer's loop, which takes its arguments from the command line and ends the process on a finding.
///
/// - Parameter each: called with every input.
@_silgen_name("LLVMFuzzerRunDriver")
private func runFuzzer(
    _ count: UnsafeMutablePointer<CInt>,
    _ arguments: UnsafeMutablePointer<UnsafeMutablePointer<UnsafeMutablePointer<CChar>?>>,
    _ each: @convention(c) (UnsafePointer<UInt8>?, Int) -> CInt
) -> CInt

/// The function that libFuzzer's own main function calls. It is never called here, but the linker needs it.
@_cdecl("LLVMFuzzerTestOneInput")
func neverCalled(_ start: UnsafePointer<UInt8>?, _ count: Int) -> CInt { 0 }

import Foundation

/// The fuzzer of the frame decoder; `deploy/fuzz` builds and runs it.
@main
struct Main {
    static func main() {
        var (count, arguments) = (CommandLine.argc, CommandLine.unsafeArgv)
        exit(
            runFuzzer(&count, &arguments) { start, count in
                FrameStream(UnsafeBufferPointer(start: start, count: count)).check()
                return 0
            })
    }
}

/// Processor time for one input, in microseconds: libFuzzer's own limit also counts what a busy machine takes away.
private let patience = 1_000_000

/// libFuzzer's loop, which takes its arguments from the command line and ends the process on a finding.
///
/// - Parameter each: called with every input.
@_silgen_name("LLVMFuzzerRunDriver")
private func runFuzzer(
    _ count: UnsafeMutablePointer<CInt>,
    _ arguments: UnsafeMutablePointer<UnsafeMutablePointer<UnsafeMutablePointer<CChar>?>>,
    _ each: @convention(c) (UnsafePointer<UInt8>?, Int) -> CInt
) -> CInt

/// What libFuzzer's own main function calls; it is never called, but must be there to link.
@_cdecl("LLVMFuzzerTestOneInput")
func neverCalled(_ start: UnsafePointer<UInt8>?, _ count: Int) -> CInt { 0 }

// A stand-in for the Objective-C runtime's header, with the declarations that the check needs.
typedef signed char BOOL;
typedef long NSInteger;
typedef struct objc_selector *SEL;
#define YES ((BOOL)1)
#define NO ((BOOL)0)

@protocol NSObject
@end

__attribute__((objc_root_class))
@interface NSObject <NSObject>
+ (instancetype)alloc;
- (instancetype)init;
@end

#include "server/workload/zoo/distillation.h"

#include <math.h>

size_t zoo_top1(const float *values, size_t n, size_t stride)
{
    size_t top = 0;
    for (size_t i = 1; i < n; i++)
        if (values[i * stride] > values[top * stride])
            top = i;
    return top;
}

// log sum exp(x / temperature), from the largest on, so that no exponential overflows.
static double log_sum_exp(const float *x, size_t n, size_t stride, double temperature)
{
    const size_t top = zoo_top1(x, n, stride);
    const double most = (double)x[top * stride] / temperature;
    double sum = 1.0; // of the largest
    for (size_t i = 0; i < n; i++)
        if (i != top)
            sum += exp((double)x[i * stride] / temperature - most);
    return most + log(sum);
}

double zoo_distillation_loss(const struct zoo_distillation *how, const float *teacher,
                             const float *student, size_t classes, size_t stride)
{
    const double t = how->temperature;
    const double teacher_sum = log_sum_exp(teacher, classes, stride, t);
    const double student_sum = log_sum_exp(student, classes, stride, t);
    double divergence = 0.0;
    for (size_t i = 0; i < classes; i++) {
        const double teacher_log = (double)teacher[i * stride] / t - teacher_sum;
        const double student_log = (double)student[i * stride] / t - student_sum;
        divergence += exp(teacher_log) * (teacher_log - student_log);
    }
    const size_t label = zoo_top1(teacher, classes, stride);
    const double entropy =
        log_sum_exp(student, classes, stride, 1.0) - (double)student[label * stride];
    return how->alpha * t * t * divergence + (1.0 - how->alpha) * entropy;
}
